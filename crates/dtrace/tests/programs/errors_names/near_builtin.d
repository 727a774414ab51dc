BEGIN
{
	trace(timestmp);
}
