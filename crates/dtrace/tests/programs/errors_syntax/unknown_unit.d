BEGIN
{
	x = 5q;
}
