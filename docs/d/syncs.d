#!/usr/bin/env -S iotomy d -s
/*
 * How long each sync of a file takes.
 *
 * iotomy d -s syncs.d
 */
#pragma D option quiet

syscall::fsync:entry, syscall::fdatasync:entry
{
	self->began = timestamp;
	self->file = fds[arg0].fi_pathname;
}

syscall::fsync:return, syscall::fdatasync:return
/self->began/
{
	printf("%-16s %10d us  %s\n", execname, (timestamp - self->began) / 1000, self->file);
	self->began = 0;
	self->file = NULL;
}
