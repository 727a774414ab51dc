BEGIN
{
	x = 5;
	x[1] = 6;
}
