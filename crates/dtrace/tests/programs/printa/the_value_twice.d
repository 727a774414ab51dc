#pragma D option quiet

syscall::read:entry
{
	@ = sum(arg2);
}

END
{
	printa("%@d %@x\n", @);
}
