#pragma D option quiet

syscall::read:entry
{
	printf("%s %s %d\n", fds[arg0].fi_pathname, fds[arg0].fi_fs, fds[arg0 + 1].fi_offset);
}
