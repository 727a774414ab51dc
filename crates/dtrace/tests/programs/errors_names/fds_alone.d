BEGIN
{
	trace(fds);
}
