#pragma D option quiet
#pragma D option strsize=8

syscall:::entry
{
	@[probefunc, execname] = count();
}
