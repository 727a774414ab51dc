BEGIN
{
	pid = 5;
}
