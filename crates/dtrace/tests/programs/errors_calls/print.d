BEGIN
{
	print(pid);
}
