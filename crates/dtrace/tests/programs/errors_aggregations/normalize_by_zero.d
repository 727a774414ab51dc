BEGIN
{
	@a = count();
	normalize(@a, 0);
}
