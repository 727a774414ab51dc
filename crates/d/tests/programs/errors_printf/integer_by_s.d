BEGIN
{
	printf("%s", pid);
}
