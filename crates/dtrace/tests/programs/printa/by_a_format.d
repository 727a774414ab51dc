#pragma D option quiet

syscall:::entry
{
	@[execname, pid] = count();
}

END
{
	printa("%-10s|%5d|%@8d\n", @);
}
