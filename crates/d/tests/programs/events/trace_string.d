BEGIN
{
	trace("hello");
}
