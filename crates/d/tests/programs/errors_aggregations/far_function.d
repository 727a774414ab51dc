BEGIN
{
	@a = median(pid);
}
