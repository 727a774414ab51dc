#pragma D option quiet

syscall::read:entry
{
	@ = count();
}

END
{
	printa("%@u calls\n", @);
}
