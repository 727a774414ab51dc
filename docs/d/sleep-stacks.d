#!/usr/bin/env -S iotomy d -s
/*
 * In which functions of the kernel a command goes to sleep.
 *
 * iotomy d -s sleep-stacks.d -c CMD
 */
#pragma D option quiet

sched:::sleep
/progenyof($target)/
{
	@[execname, stack(8)] = count();
}
