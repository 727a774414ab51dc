#pragma D option quiet
#pragma D option bufsize=4k
#pragma D option strsize=1024

syscall::read:entry
{
	printf("%d %s\n", arg0, "of a record with room for the longest string");
}
