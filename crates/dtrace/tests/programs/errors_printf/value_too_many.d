BEGIN
{
	printf("%d\n", 5, 6);
}
