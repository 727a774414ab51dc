#!/usr/bin/env -S iotomy d -s
/*
 * Who wakes the threads of a command.
 *
 * iotomy d -s wakers.d -c CMD
 */
#pragma D option quiet

sched:::wakeup
/args[1]->pr_pid == $target/
{
	@[execname] = count();
}
