#pragma D option quiet

syscall:::entry
{
	@[probefunc] = count();
}
