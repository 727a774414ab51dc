#pragma D option quiet

syscall::read:entry
{
	@ = count();
}

tick-1s
{
	printa("%@d\n", @);
	clear(@);
}
