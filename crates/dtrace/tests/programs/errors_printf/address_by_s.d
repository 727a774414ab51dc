BEGIN
{
	printf("%s", arg0);
}
