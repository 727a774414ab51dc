BEGIN
//
{
	trace(1);
}
