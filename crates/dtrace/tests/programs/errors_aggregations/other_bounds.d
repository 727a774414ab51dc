BEGIN
{
	@a = lquantize(pid, 0, 10, 1);
	@a = lquantize(pid, 0, 20, 1);
}
