#pragma D option quiet

syscall:::entry
{
	@[execname] = count();
}

END
{
	printa("%s\n", @);
}
