BEGIN
{
	printf("hello");
}
