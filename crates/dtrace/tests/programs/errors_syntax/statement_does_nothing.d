BEGIN
{
	pid;
	x == 5;
	1 + 2;
}
