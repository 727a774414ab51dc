BEGIN
{
	a["x"] = 5;
	a[7] = 6;
}
