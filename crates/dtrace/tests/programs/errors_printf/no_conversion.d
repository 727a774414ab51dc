BEGIN
{
	printf("hello\n", 5);
}
