#pragma D option quiet

syscall::read:entry
/progenyof($1)/
{
	printf("%d\n", pid);
}
