#pragma D option quiet
#pragma D option dynvarsize=80

syscall::read:entry
{
	self->x = 1;
}

syscall::read:return
/self->x/
{
	printf("%d", tid);
	self->x = 0;
}

END
{
	printf("\n");
}
