#!/usr/bin/env -S iotomy d -s
/*
 * Bytes that programs send and receive through sockets.
 *
 * iotomy d -s socket-bytes.d
 */
#pragma D option quiet

syscall::sendto:return, syscall::sendmsg:return, syscall::recvfrom:return, syscall::recvmsg:return
/arg0 > 0/
{
	@[execname, probefunc] = sum(arg0);
}

END
{
	printa("%-16s %-10s %@14d\n", @);
}
