BEGIN
{
	printf("%d", curpsinfo);
}
