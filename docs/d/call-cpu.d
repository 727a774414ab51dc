#!/usr/bin/env -S iotomy d -s
/*
 * How much time on a CPU the system calls of a command take, beside their wall time.
 *
 * iotomy d -s call-cpu.d -c CMD
 */
#pragma D option quiet

syscall:::entry
/progenyof($target)/
{
	self->began = timestamp;
	self->cpu = vtimestamp;
}

syscall:::return
/self->began/
{
	@wall[probefunc] = sum(timestamp - self->began);
	@cpu[probefunc] = sum(vtimestamp - self->cpu);
	self->began = 0;
	self->cpu = 0;
}

END
{
	normalize(@wall, 1000);
	normalize(@cpu, 1000);
	printf("%-20s %12s %12s\n", "CALL", "WALL us", "CPU us");
	printa("%-20s %@12d %@12d\n", @wall, @cpu);
}
