#!/usr/bin/env -S iotomy d -s
/*
 * A line for each file that is removed or renamed, and who does it.
 *
 * iotomy d -s removals.d
 */
#pragma D option quiet

syscall::unlink:entry, syscall::rmdir:entry, syscall::rename:entry
{
	self->path = arg0;
}

syscall::unlinkat:entry, syscall::renameat:entry, syscall::renameat2:entry
{
	self->path = arg1;
}

syscall::unlink:return, syscall::rmdir:return, syscall::rename:return,
syscall::unlinkat:return, syscall::renameat:return, syscall::renameat2:return
/self->path && errno == 0/
{
	printf("%-16s %-10s %s\n", execname, probefunc, copyinstr(self->path));
}

syscall::unlink:return, syscall::rmdir:return, syscall::rename:return,
syscall::unlinkat:return, syscall::renameat:return, syscall::renameat2:return
/self->path/
{
	self->path = 0;
}
