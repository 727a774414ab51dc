#!/usr/bin/env -S iotomy d -s
/*
 * How long threads wait for a CPU from when they are woken on, by program, in ns.
 *
 * iotomy d -s run-queue.d
 */
#pragma D option quiet

sched:::wakeup
{
	woken[args[0]->pr_lwpid] = timestamp;
}

sched:::on-cpu
/woken[tid]/
{
	@[execname] = quantize(timestamp - woken[tid]);
	woken[tid] = 0;
}
