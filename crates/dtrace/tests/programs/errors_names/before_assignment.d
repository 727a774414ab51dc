BEGIN
{
	y = x;
	x = 5;
}
