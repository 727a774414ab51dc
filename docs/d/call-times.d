#!/usr/bin/env -S iotomy d -s
/*
 * How long the system calls of a command take: how many, their mean and their sum.
 *
 * iotomy d -s call-times.d -c CMD
 */
#pragma D option quiet

syscall:::entry
/progenyof($target)/
{
	self->began = timestamp;
}

syscall:::return
/self->began/
{
	@calls[probefunc] = count();
	@mean[probefunc] = avg(timestamp - self->began);
	@sum[probefunc] = sum(timestamp - self->began);
	self->began = 0;
}

END
{
	printf("%-20s %8s %12s %14s\n", "CALL", "COUNT", "MEAN ns", "SUM ns");
	printa("%-20s %@8d %@12d %@14d\n", @calls, @mean, @sum);
}
