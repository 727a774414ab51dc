#!/usr/bin/env -S iotomy d -s
/*
 * How large the reads of a command are: what they ask for, and what they get.
 *
 * iotomy d -s read-sizes.d -c CMD
 */
#pragma D option quiet

syscall::read:entry
/progenyof($target)/
{
	@["asked", execname] = quantize(arg2);
}

syscall::read:return
/progenyof($target) && errno == 0/
{
	@["got", execname] = quantize(arg0);
}
