BEGIN
{
	printf("5%");
}
