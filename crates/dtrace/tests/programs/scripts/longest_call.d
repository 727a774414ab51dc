#pragma D option quiet

uint64_t longest;
string name;

syscall:::entry
{
	self->t = timestamp;
}

syscall:::return
/self->t && timestamp - self->t > longest/
{
	longest = timestamp - self->t;
	name = probefunc;
}

END
{
	printf("%s %d\n", name, longest);
}
