#!/usr/bin/env -S iotomy d -s
/*
 * How long a command waits for descriptors, by call.
 *
 * iotomy d -s waits.d -c CMD
 */
#pragma D option quiet

syscall::poll:entry, syscall::ppoll:entry, syscall::select:entry, syscall::pselect6:entry,
syscall::epoll_wait:entry, syscall::epoll_pwait:entry
/progenyof($target)/
{
	self->began = timestamp;
}

syscall::poll:return, syscall::ppoll:return, syscall::select:return, syscall::pselect6:return,
syscall::epoll_wait:return, syscall::epoll_pwait:return
/self->began/
{
	@[execname, probefunc] = quantize(timestamp - self->began);
	self->began = 0;
}
