BEGIN
{
	x = execname == 5;
}
