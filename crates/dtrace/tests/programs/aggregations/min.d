#pragma D option quiet

syscall::read:entry
{
	@ = min(arg2);
}
