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
	@[copyinstr(arg1)] = count();
}

syscall::stat:entry, syscall::lstat:entry, syscall::access:entry, syscall::readlink:entry
/progenyof($target)/
{
	@[copyinstr(arg0)] = count();
}
