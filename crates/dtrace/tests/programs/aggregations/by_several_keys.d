#pragma D option quiet

syscall:::entry
{
	@[execname, pid, arg0] = count();
}
