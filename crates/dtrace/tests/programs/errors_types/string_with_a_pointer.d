BEGIN
{
	x = execname == copyin(0, 4);
}
