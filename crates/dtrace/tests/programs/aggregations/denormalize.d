#pragma D option quiet

syscall::read:entry
{
	@ = sum(arg2);
}

END
{
	normalize(@, 10);
	printa("%@d\n", @);
	denormalize(@);
	printa("%@d\n", @);
}
