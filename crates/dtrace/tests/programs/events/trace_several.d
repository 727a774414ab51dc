BEGIN
{
	trace("a");
	trace(1);
}
