BEGIN
{
	@a = cuont();
}
