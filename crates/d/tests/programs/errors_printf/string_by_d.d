BEGIN
{
	printf("%d", execname);
}
