#!/usr/bin/env -S iotomy d -s
/*
 * A line for each file that is removed or renamed, and who does it.
 *
 * iotomy d -s removals.d
 */
#pragma D option quiet

syscall::unlink:entry, syscall::rmdir:entry, syscall::rename:entry
{
	printf("%-16s %-10s %s\n", execname, probefunc, copyinstr(arg0));
}

syscall::unlinkat:entry, syscall::renameat:entry, syscall::renameat2:entry
{
	printf("%-16s %-10s %s\n", execname, probefunc, copyinstr(arg1));
}
