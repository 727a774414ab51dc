#pragma D option quiet

syscall::write:entry
{
	tracemem(copyin(arg1, 20), 20);
}
