BEGIN
{
	a[1] = 5;
	trace(a);
}
