#pragma D option quiet

syscall::read:entry
{
	this->n++;
	this->name = probefunc;
}

syscall::read:entry
{
	printf("%s %d\n", this->name, this->n);
}
