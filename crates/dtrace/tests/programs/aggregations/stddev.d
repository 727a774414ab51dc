#pragma D option quiet

syscall::read:entry
{
	@ = stddev(arg2);
}
