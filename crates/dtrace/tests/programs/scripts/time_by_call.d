#pragma D option quiet

syscall:::entry
{
	self->start = timestamp;
}

syscall:::return
/self->start/
{
	@time[probefunc] = sum(timestamp - self->start);
	@calls[probefunc] = count();
	self->start = 0;
}

END
{
	printf("%-10s %10s %10s\n", "CALL", "CALLS", "NS");
	printa("%-10s %@10d %@10d\n", @calls, @time);
}
