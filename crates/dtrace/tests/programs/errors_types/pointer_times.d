BEGIN
{
	x = copyin(0, 4) * 2;
}
