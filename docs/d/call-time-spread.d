#!/usr/bin/env -S iotomy d -s
/*
 * How the times of each system call of a command are distributed, in ns.
 *
 * iotomy d -s call-time-spread.d -c CMD
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
	@[probefunc] = quantize(timestamp - self->began);
	self->began = 0;
}
