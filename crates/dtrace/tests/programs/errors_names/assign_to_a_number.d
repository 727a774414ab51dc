BEGIN
{
	5 = x;
}
