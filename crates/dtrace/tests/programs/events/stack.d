tick-1s
{
	stack();
}
