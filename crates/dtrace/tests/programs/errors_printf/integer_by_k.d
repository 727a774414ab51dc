BEGIN
{
	printf("%k", pid);
}
