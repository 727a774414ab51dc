BEGIN
{
	return 5;
}
