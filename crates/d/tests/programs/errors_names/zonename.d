BEGIN
{
	trace(zonename);
}
