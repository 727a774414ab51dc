BEGIN
{
	trace(foo);
}
