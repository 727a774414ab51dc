#!/usr/bin/env -S iotomy d -s
/*
 * A line for each system call of a command that fails.
 *
 * iotomy d -s errors-live.d -c CMD
 */
#pragma D option quiet

syscall:::return
/errno != 0 && progenyof($target)/
{
	printf("%-8d %-16s %-20s errno %d\n", pid, execname, probefunc, errno);
}
