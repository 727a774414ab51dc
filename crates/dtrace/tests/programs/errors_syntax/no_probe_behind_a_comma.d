BEGIN,
{
	trace(1);
}
