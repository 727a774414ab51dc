#pragma D option quiet

syscall::read:entry
{
	@[execname] = quantize(arg2);
}

END
{
	printa("by %s:%@d.\n", @);
}
