BEGIN
{
	a[1, 2] = 5;
	trace(a[1]);
}
