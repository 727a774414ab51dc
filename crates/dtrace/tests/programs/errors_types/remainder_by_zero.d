BEGIN
{
	x = pid % (2 - 2);
}
