BEGIN
{
	x = (int)execname;
}
