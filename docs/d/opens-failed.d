#!/usr/bin/env -S iotomy d -s
/*
 * Paths that a command cannot open, with the error and how often.
 *
 * iotomy d -s opens-failed.d -c CMD
 */
#pragma D option quiet

syscall::openat:entry
/progenyof($target)/
{
	self->path = arg1;
}

syscall::openat:return
/self->path && errno != 0/
{
	@[errno, copyinstr(self->path)] = count();
}

syscall::openat:return
/self->path/
{
	self->path = 0;
}

END
{
	printf("%6s %8s  %s\n", "ERRNO", "COUNT", "PATH");
	printa("%6d %@8d  %s\n", @);
}
