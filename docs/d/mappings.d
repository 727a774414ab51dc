#!/usr/bin/env -S iotomy d -s
/*
 * How large the mappings are that a command makes, and how many.
 *
 * iotomy d -s mappings.d -c CMD
 */
#pragma D option quiet

syscall::mmap:entry
/progenyof($target)/
{
	@count[execname] = count();
	@bytes[execname] = sum(arg1);
	@sizes[execname] = quantize(arg1);
}

END
{
	printa("%-16s %@8d mappings, %@d bytes\n", @count, @bytes);
	printa(@sizes);
}
