#pragma D option quiet

syscall::read:entry
{
	@n[execname] = count();
}

syscall::write:entry
{
	@s[execname] = sum(arg2);
}

END
{
	printa("%s %@d %@d\n", @n, @s);
}
