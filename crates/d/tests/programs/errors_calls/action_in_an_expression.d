BEGIN
{
	x = printf("a");
}
