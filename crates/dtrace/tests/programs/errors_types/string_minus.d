BEGIN
{
	x = 5 - "a";
}
