BEGIN
{
	trace(title);
}
