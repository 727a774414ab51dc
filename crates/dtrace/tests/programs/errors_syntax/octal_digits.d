BEGIN
{
	x = 089;
}
