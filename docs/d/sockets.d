#!/usr/bin/env -S iotomy d -s
/*
 * Connections that programs make and accept, and the errors of those that fail.
 *
 * iotomy d -s sockets.d
 */
#pragma D option quiet

syscall::connect:return, syscall::accept:return, syscall::accept4:return
{
	@[execname, probefunc, errno] = count();
}

END
{
	printf("%-16s %-10s %6s %8s\n", "PROGRAM", "CALL", "ERRNO", "COUNT");
	printa("%-16s %-10s %6d %@8d\n", @);
}
