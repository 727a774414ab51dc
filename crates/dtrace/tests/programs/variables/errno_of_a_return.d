#pragma D option quiet

syscall:::return
/errno == ENOENT/
{
	printf("%s %d %d\n", probefunc, errno, (int)arg1);
}
