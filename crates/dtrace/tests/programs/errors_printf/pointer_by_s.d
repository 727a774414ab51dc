BEGIN
{
	printf("%s", copyin(0, 1));
}
