BEGIN
{
	@a = lquantize(pid, 0, tid, 1);
}
