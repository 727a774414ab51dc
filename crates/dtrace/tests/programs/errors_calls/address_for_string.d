BEGIN
{
	trace(strlen(arg0));
}
