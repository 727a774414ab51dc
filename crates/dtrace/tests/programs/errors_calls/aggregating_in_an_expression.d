BEGIN
{
	x = sum(pid);
}
