#!/usr/bin/env -S iotomy d -s
/*
 * How often a command moves in its files, and how far from their beginning.
 *
 * iotomy d -s seeks.d -c CMD
 */
#pragma D option quiet

syscall::lseek:return
/progenyof($target) && errno == 0/
{
	@seeks[execname] = count();
	@offset[execname] = max(arg0);
}

END
{
	printf("%-16s %8s %16s\n", "PROGRAM", "SEEKS", "FARTHEST");
	printa("%-16s %@8d %@16d\n", @seeks, @offset);
}
