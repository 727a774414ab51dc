#!/usr/bin/env -S iotomy d -s
/*
 * Paths whose status a command asks for, and how often.
 *
 * iotomy d -s stats.d -c CMD
 */
#pragma D option quiet

syscall::newfstatat:entry, syscall::statx:entry
/progenyof($target)/
{
	self->path = arg1;
}

syscall::stat:entry, syscall::lstat:entry, syscall::access:entry, syscall::readlink:entry
/progenyof($target)/
{
	self->path = arg0;
}

/* The kernel has read it by then, so that it is in memory. */
syscall::newfstatat:return, syscall::statx:return, syscall::stat:return, syscall::lstat:return,
syscall::access:return, syscall::readlink:return
/self->path/
{
	@[copyinstr(self->path)] = count();
	self->path = 0;
}
