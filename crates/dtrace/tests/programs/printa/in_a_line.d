syscall::read:entry
{
	@ = count();
}

END
{
	printa("%@d", @);
}
