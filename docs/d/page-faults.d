#!/usr/bin/env -S iotomy d -s
/*
 * How many page faults the programs of a command have, and how many of them are for pages that are there.
 *
 * iotomy d -s page-faults.d -c CMD
 */
#pragma D option quiet

vminfo:::as_fault
/progenyof($target)/
{
	@all[execname] = sum(arg0);
}

vminfo:::prot_fault
/progenyof($target)/
{
	@there[execname] = sum(arg0);
}

END
{
	printa("%-16s %@8d page faults, %@d of them for pages that are there\n", @all, @there);
}
