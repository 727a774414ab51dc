#!/usr/bin/env -S iotomy d -s
/*
 * How long a command sleeps on purpose.
 *
 * iotomy d -s sleeps.d -c CMD
 */
#pragma D option quiet

syscall::nanosleep:entry, syscall::clock_nanosleep:entry
/progenyof($target)/
{
	self->began = timestamp;
}

syscall::nanosleep:return, syscall::clock_nanosleep:return
/self->began/
{
	@count[execname] = count();
	@ms[execname] = sum((timestamp - self->began) / 1000000);
	self->began = 0;
}

END
{
	printa("%-16s %@8d sleeps, %@d ms\n", @count, @ms);
}
