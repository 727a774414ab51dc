#!/usr/bin/env -S iotomy d -s
/*
 * A line for each file that a command opens: the descriptor, and the path as it is given.
 *
 * iotomy d -s opens.d -c CMD
 */
#pragma D option quiet

syscall::open:entry
/progenyof($target)/
{
	self->path = arg0;
}

syscall::openat:entry
/progenyof($target)/
{
	self->path = arg1;
}

syscall::open:return, syscall::openat:return
/self->path/
{
	printf("%-16s %4d %s\n", execname, (int)arg0, copyinstr(self->path));
	self->path = 0;
}
