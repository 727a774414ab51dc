BEGIN
{
	trace(execnam);
}
