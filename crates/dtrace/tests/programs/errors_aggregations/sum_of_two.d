BEGIN
{
	@a = sum(1, 2);
}
