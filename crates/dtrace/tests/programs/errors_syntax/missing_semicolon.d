BEGIN
{
	x = 5
	y = 6;
}
