#!/usr/bin/env -S iotomy d -s
/*
 * Bytes that are read and written, by kind of file system.
 *
 * iotomy d -s bytes-by-file-system.d
 */
#pragma D option quiet

syscall::read:entry, syscall::write:entry
{
	self->kind = fds[arg0].fi_fs;
	self->is_open = 1;
}

syscall::read:return, syscall::write:return
/self->is_open && arg0 > 0/
{
	@[self->kind, probefunc] = sum(arg0);
}

syscall::read:return, syscall::write:return
/self->is_open/
{
	self->kind = NULL;
	self->is_open = 0;
}

END
{
	printa("%-16s %-8s %@16d\n", @);
}
