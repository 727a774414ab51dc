#pragma D option quiet

syscall:::
{
	printf("%s:%s\n", probefunc, probename);
}

read:entry
{
	printf("short\n");
}
