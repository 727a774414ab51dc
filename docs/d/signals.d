#!/usr/bin/env -S iotomy d -s
/*
 * Who sends which signal to whom.
 *
 * iotomy d -s signals.d
 */
#pragma D option quiet

proc:::signal-send
{
	@[execname, args[2], args[1]->pr_fname] = count();
}

END
{
	printf("%-16s %6s %-16s %8s\n", "FROM", "SIGNAL", "TO", "COUNT");
	printa("%-16s %6d %-16s %@8d\n", @);
}
