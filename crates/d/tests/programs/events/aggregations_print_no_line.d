BEGIN
{
	@ = count();
}
