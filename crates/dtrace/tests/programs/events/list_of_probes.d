#pragma D option quiet

syscall::read:entry,
syscall::write:entry,
BEGIN
{
	printf("%s:%s\n", probefunc, probename);
}
