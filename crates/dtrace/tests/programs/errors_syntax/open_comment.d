BEGIN
{
	trace(1); /* begins
}
