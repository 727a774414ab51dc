#!/usr/bin/env -S iotomy d -s
/*
 * Which processes of a command make system calls, and how many.
 *
 * iotomy d -s calls-by-process.d -c CMD
 */
#pragma D option quiet

syscall:::entry
/progenyof($target)/
{
	@[pid, execname] = count();
}

END
{
	printf("%8s %-16s %10s\n", "PID", "PROGRAM", "CALLS");
	printa("%8d %-16s %@10d\n", @);
}
