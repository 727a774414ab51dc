#pragma D option quiet

syscall::read:entry
{
	@[arg2] = count();
}

END
{
	trunc(@, 1);
	printa("%d %@d\n", @);
}
