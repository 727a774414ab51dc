BEGIN
{
	x = stack();
}
