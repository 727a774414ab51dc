BEGIN
{
	tracemem(arg0);
}
