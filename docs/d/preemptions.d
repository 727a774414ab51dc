#!/usr/bin/env -S iotomy d -s
/*
 * Which programs leave their CPU without wanting to.
 *
 * iotomy d -s preemptions.d
 */
#pragma D option quiet

sched:::preempt
{
	@[execname] = count();
}
