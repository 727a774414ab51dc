BEGIN
{
	@a = lquantize(pid, 0, 1000000, 1);
}
