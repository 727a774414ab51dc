BEGIN
{
	trace(self);
}
