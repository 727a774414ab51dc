#pragma D option quiet

syscall:::entry
{
	@[execname] = avg(arg2);
}
