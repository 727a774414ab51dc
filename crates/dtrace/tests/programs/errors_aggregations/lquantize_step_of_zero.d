BEGIN
{
	@a = lquantize(pid, 0, 10, 0);
}
