#!/usr/bin/env -S iotomy d -s
/*
 * Which system calls fail, by program and error.
 *
 * iotomy d -s errors.d
 */
#pragma D option quiet

syscall:::return
/errno != 0/
{
	@[execname, probefunc, errno] = count();
}

END
{
	printf("%-16s %-20s %6s %8s\n", "PROGRAM", "CALL", "ERRNO", "COUNT");
	printa("%-16s %-20s %6d %@8d\n", @);
}
