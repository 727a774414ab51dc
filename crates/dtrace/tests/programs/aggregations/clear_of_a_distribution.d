#pragma D option quiet

syscall::read:entry
{
	@ = quantize(arg2);
}

tick-1s
{
	clear(@);
}
