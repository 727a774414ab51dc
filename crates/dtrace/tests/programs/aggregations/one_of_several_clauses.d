#pragma D option quiet

syscall::read:entry,
syscall::write:entry
{
	@[probefunc] = sum(arg2);
}

syscall::write:entry
{
	@["all"] = sum(arg2);
}
