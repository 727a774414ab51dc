BEGIN
{
	x = (float)5;
}
