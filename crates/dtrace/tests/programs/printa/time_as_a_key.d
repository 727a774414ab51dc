#pragma D option quiet

syscall::read:entry
{
	@[walltimestamp / 1000000000 * 1000000000] = count();
}

END
{
	printa("%Y %@d\n", @);
}
