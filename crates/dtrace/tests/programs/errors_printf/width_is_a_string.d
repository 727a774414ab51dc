BEGIN
{
	printf("%*d", "a", 5);
}
