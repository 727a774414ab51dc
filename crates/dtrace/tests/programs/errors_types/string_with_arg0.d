BEGIN
{
	x = execname == arg0;
}
