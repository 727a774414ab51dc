BEGIN
{
	*(int *)arg0 = 5;
}
