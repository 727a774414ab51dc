BEGIN
{
	@a += 5;
}
