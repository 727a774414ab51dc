BEGIN
/pid == 1/ /pid == 2/
{
	trace(1);
}
