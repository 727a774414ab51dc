#pragma D option quiet

syscall:::entry
{
	@[probefunc] = quantize(arg2);
}
