#pragma D option quiet

syscall::openat:entry
{
	self->path = arg1;
}

syscall::openat:return
/self->path && errno != 0/
{
	printf("%s %d %s\n", execname, errno, copyinstr(self->path));
}

syscall::openat:return
{
	self->path = 0;
}
