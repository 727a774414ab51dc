BEGIN
{
	x = 5 6;
}
