#pragma D option quiet

syscall:::entry,
syscall::read:entry
{
	printf("%d\n", ++n);
}
