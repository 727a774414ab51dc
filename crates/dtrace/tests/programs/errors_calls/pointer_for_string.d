BEGIN
{
	trace(basename(copyin(0, 4)));
}
