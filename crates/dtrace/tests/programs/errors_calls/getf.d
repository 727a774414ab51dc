BEGIN
{
	trace(getf(1));
}
