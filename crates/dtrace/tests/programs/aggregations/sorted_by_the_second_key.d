#pragma D option quiet

#pragma D option aggsortkey
#pragma D option aggsortkeypos=1

syscall:::entry
{
	@[execname, pid] = count();
}
