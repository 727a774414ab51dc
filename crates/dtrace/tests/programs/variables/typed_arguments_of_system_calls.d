#pragma D option quiet

syscall::read:entry
{
	printf("%d\n", args[2]);
}
