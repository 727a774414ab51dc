#pragma D option quiet
#pragma D option bufsize=100

syscall::read:entry
{
	printf("%d\n", arg0);
}
