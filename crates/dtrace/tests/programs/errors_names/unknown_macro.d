BEGIN
{
	trace($foo);
}
