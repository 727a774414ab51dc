#pragma D option quiet

tick-1s
{
	@[ustack(1)] = count();
}

END
{
	printa("%k%@d\n", @);
}
