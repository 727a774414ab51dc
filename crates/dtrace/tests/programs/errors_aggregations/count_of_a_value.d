BEGIN
{
	@a = count(5);
}
