BEGIN
{
	x = curpsinfo ? 1 : 2;
}
