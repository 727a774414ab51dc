#pragma D option quiet

syscall:::entry
{
	@[execname] = count();
}

END
{
	trunc(@, 2);
}
