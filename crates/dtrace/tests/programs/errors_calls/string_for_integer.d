BEGIN
{
	trace(copyinstr("a"));
}
