#!/usr/bin/env -S iotomy d -s
/*
 * How long the threads of a command are off a CPU at a time, in ns.
 *
 * iotomy d -s off-cpu.d -c CMD
 */
#pragma D option quiet

sched:::off-cpu
/progenyof($target)/
{
	self->left = timestamp;
}

sched:::on-cpu
/self->left/
{
	@[execname] = quantize(timestamp - self->left);
	self->left = 0;
}
