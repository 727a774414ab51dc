#pragma D option quiet
#pragma D option destructive

syscall::openat:entry
{
	system("ls -l %s", copyinstr(arg1));
}
