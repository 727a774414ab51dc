#pragma D option quiet

#pragma D option aggsortkey

syscall:::entry
{
	@[pid] = count();
}
