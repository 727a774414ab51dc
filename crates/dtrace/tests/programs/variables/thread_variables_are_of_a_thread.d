#pragma D option quiet

syscall::read:entry
{
	self->size = arg2;
}

syscall::read:return
/self->size/
{
	printf("%d %d\n", tid, self->size);
	self->size = 0;
}
