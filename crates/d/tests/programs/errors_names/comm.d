BEGIN
{
	trace(comm);
}
