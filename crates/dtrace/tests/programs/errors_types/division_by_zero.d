BEGIN
{
	x = 5 / 0;
}
