#pragma D option quiet

syscall::read:entry
{
	@n[execname] = count();
	@s[execname] = sum(arg2);
}

END
{
	printa("%s %@d %@d\n", @n, @s);
}
