BEGIN
{
	printf("hello\n");
}
