#pragma D option quiet

syscall:::entry
{
	@[execname, pid] = count();
}

END
{
	printa("%@d %s\n", @);
}
