BEGIN
/pid == 1
{
	trace(1);
}
