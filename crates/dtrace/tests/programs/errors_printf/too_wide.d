BEGIN
{
	printf("%99999d", 5);
}
