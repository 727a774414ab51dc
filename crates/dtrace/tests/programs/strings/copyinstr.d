#pragma D option quiet

syscall::openat:entry
{
	printf("%s|%s\n", copyinstr(arg1), copyinstr(arg1, 4));
}
