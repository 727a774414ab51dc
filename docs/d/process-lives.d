#!/usr/bin/env -S iotomy d -s
/*
 * How long each process of a command lives, and its time on a CPU.
 *
 * iotomy d -s process-lives.d -c CMD
 */
#pragma D option quiet

proc:::start
/progenyof($target)/
{
	began[pid] = timestamp;
}

proc:::exit
/began[pid]/
{
	printf("%8d %-16s %8d us, %8d us on a CPU\n", pid, execname, (timestamp - began[pid]) / 1000,
	    vtimestamp / 1000);
	began[pid] = 0;
}
