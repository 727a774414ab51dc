BEGIN
{
	printf("%d %s\n", 5);
}
