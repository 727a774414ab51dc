BEGIN
{
	trace(pid->x);
}
