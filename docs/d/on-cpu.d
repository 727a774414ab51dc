#!/usr/bin/env -S iotomy d -s
/*
 * How long the threads of a command stay on a CPU at a time, in ns.
 *
 * iotomy d -s on-cpu.d -c CMD
 */
#pragma D option quiet

sched:::on-cpu
/progenyof($target)/
{
	self->began = timestamp;
}

sched:::off-cpu
/self->began/
{
	@[execname] = quantize(timestamp - self->began);
	self->began = 0;
}
