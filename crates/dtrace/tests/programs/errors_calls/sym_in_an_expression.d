BEGIN
{
	x = sym(arg0);
}
