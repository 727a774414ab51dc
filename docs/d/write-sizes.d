#!/usr/bin/env -S iotomy d -s
/*
 * How large the writes of each program are.
 *
 * iotomy d -s write-sizes.d
 */
#pragma D option quiet

syscall::write:return
/errno == 0/
{
	@[execname] = quantize(arg0);
}
