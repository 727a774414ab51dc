#!/usr/bin/env -S iotomy d -s
/*
 * A line for each process that ends: by itself, by a signal, or with a core dump.
 *
 * iotomy d -s process-ends.d
 */
#pragma D option quiet

proc:::exit
{
	printf("%8d %-16s %s\n", pid, execname,
	    args[0] == CLD_EXITED ? "exited" : args[0] == CLD_KILLED ? "killed" : "dumped");
}
