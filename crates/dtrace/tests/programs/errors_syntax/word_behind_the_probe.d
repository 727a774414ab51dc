BEGIN tick-1s
{
	trace(1);
}
