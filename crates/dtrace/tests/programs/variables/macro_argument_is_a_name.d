#pragma D option quiet

syscall::$1:entry
{
	printf("%s %d\n", probefunc, $2);
}
