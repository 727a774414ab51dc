#pragma D option quiet

syscall::read:entry
{
	@[probefunc] = count();
}

tick-1s
{
	clear(@);
}
