BEGIN
{
	x = 5;
	stack(x);
}
