#pragma D option quiet

syscall::ioctl:entry
{
	this->p = copyin(arg0, 12);
	printf("%d %d %d\n", *(int *)this->p, *(uint16_t *)(this->p + 4), ((char *)this->p)[8]);
	printf("%s\n", stringof(this->p + 8));
}
