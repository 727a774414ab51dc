#pragma D option quiet

self int depth;
this string name;
uint64_t total;

syscall::read:entry
/self->depth < 2/
{
	self->depth++;
	this->name = execname;
	total += arg2;
	printf("%d %s %d\n", self->depth, this->name, total);
}
