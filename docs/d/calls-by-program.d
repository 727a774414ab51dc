#!/usr/bin/env -S iotomy d -s
/*
 * Which programs make system calls, and how many.
 *
 * iotomy d -s calls-by-program.d
 */
#pragma D option quiet

syscall:::entry
{
	@[execname] = count();
}
