BEGIN
{
	printf("%*d");
}
