#!/usr/bin/env -S iotomy d -s
/*
 * Which system calls a command and its children make, and how many.
 *
 * iotomy d -s calls-by-name.d -c CMD
 */
#pragma D option quiet

syscall:::entry
/progenyof($target)/
{
	@[probefunc] = count();
}
