#pragma D option quiet

syscall::read:entry
{
	@ = lquantize(arg2, 0, 100, 10);
}

tick-1s
{
	clear(@);
}
