BEGIN
{
	x = 5;
	clear(x);
}
