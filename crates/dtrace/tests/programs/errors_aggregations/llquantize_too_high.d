BEGIN
{
	@a = llquantize(pid, 10, 0, 30, 10);
}
