BEGIN
{
	x = execname == 'cat';
}
