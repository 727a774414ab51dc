BEGIN
{
	printf("%f", 5);
}
