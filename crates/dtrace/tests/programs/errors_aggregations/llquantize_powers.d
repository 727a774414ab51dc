BEGIN
{
	@a = llquantize(pid, 10, 6, 6, 20);
}
