#pragma D option quiet

syscall::read:entry
{
	@ = sum(arg2);
	n++;
}

END
{
	normalize(@, n);
}
