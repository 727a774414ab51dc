#!/usr/bin/env -S iotomy d -s
/*
 * A line for each program that is executed, with its arguments.
 *
 * iotomy d -s new-processes.d
 */
#pragma D option quiet

proc:::exec-success
{
	printf("%Y %8d %8d  %s\n", walltimestamp, pid, ppid, curpsinfo->pr_psargs);
}
