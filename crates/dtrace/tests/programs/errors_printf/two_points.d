BEGIN
{
	printf("%..5d", 5);
}
