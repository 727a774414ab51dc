#pragma D option quiet

syscall:::entry
{
	self->times[probefunc]++;
}

END
{
	printf("%d\n", self->times["read"]);
}

tick-1s
{
	printf("%d %d\n", self->times["read"], self->times["write"]);
}
