BEGIN
{
	x = curpsinfo;
}
