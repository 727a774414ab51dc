BEGIN
{
	a[1 = 5;
}
