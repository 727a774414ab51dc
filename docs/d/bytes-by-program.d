#!/usr/bin/env -S iotomy d -s
/*
 * Bytes that programs read and write by read(2) and write(2).
 *
 * iotomy d -s bytes-by-program.d
 */
#pragma D option quiet

syscall::read:return
/arg0 > 0/
{
	@read[execname] = sum(arg0);
}

syscall::write:return
/arg0 > 0/
{
	@written[execname] = sum(arg0);
}

END
{
	printf("%-16s %14s %14s\n", "PROGRAM", "READ", "WRITTEN");
	printa("%-16s %@14d %@14d\n", @read, @written);
}
