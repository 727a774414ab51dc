BEGIN
{
	trace(curpsinfo->5);
}
