BEGIN
{
	trace(curpsinfo);
}
