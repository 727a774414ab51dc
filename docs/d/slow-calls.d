#!/usr/bin/env -S iotomy d -s
/*
 * A line for each system call of a command that takes longer than so many microseconds.
 *
 * iotomy d -s slow-calls.d 1000 -c CMD
 */
#pragma D option quiet

syscall:::entry
/progenyof($target)/
{
	self->began = timestamp;
}

syscall:::return
/self->began && timestamp - self->began > $1 * 1000/
{
	printf("%-16s %-20s %10d us\n", execname, probefunc, (timestamp - self->began) / 1000);
}

syscall:::return
/self->began/
{
	self->began = 0;
}
