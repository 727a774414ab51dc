#pragma D option quiet

int zero;

syscall::read:entry
{
	n = 5 / zero;
}

syscall::write:entry
{
	s = copyinstr(arg1);
}
