BEGIN
{
	trace(stringof(1, 2));
}
