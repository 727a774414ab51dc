BEGIN
{
	trace(5l);
}
