BEGIN
{
	trace(5);
}
