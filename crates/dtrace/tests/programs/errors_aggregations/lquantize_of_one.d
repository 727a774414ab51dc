BEGIN
{
	@a = lquantize(pid);
}
