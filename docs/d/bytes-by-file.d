#!/usr/bin/env -S iotomy d -s
/*
 * Bytes that a command reads and writes, by file.
 *
 * iotomy d -s bytes-by-file.d -c CMD
 */
#pragma D option quiet

syscall::read:entry, syscall::pread64:entry, syscall::write:entry, syscall::pwrite64:entry
/progenyof($target)/
{
	self->file = fds[arg0].fi_pathname;
	self->is_open = 1;
}

syscall::read:return, syscall::pread64:return
/self->is_open && arg0 > 0/
{
	@read[self->file] = sum(arg0);
}

syscall::write:return, syscall::pwrite64:return
/self->is_open && arg0 > 0/
{
	@written[self->file] = sum(arg0);
}

syscall::read:return, syscall::pread64:return, syscall::write:return, syscall::pwrite64:return
/self->is_open/
{
	self->file = NULL;
	self->is_open = 0;
}

END
{
	printf("%14s %14s  %s\n", "READ", "WRITTEN", "FILE");
	printa("%@14d %@14d  %s\n", @read, @written);
}
