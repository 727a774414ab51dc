BEGIN
{
	trace(curpsinfo->x);
}
