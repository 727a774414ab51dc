#pragma D option quiet

syscall:::entry
{
	@x[execname] = count();
	@y = count();
}

END
{
	printa(@x);
}
