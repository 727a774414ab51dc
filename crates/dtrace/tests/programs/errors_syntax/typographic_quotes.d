BEGIN
{
	printf(“hello”);
}
