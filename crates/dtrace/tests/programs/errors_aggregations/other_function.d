BEGIN
{
	@a = count();
	@a = sum(pid);
}
