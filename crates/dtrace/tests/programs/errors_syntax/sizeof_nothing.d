BEGIN
{
	trace(sizeof ());
}
