#!/usr/bin/env -S iotomy d -s
/*
 * Which programs make processes and threads.
 *
 * iotomy d -s forks.d
 */
#pragma D option quiet

proc:::create
{
	@[execname, "process"] = count();
}

proc:::lwp-create
{
	@[execname, "thread"] = count();
}
