#pragma D option quiet

syscall::*read*:entry,
syscall::[wx]rite:return
{
	printf("%s:%s\n", probefunc, probename);
}
