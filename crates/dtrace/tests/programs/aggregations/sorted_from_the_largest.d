#pragma D option quiet

#pragma D option aggsortrev

syscall:::entry
{
	@[execname] = count();
}
