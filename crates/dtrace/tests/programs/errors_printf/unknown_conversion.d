BEGIN
{
	printf("%d %z", 5, 6);
}
