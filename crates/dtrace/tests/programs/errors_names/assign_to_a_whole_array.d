BEGIN
{
	a[1] = 5;
	a = 6;
}
