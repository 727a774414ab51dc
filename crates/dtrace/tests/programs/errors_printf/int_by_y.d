BEGIN
{
	printf("%Y", pid);
}
