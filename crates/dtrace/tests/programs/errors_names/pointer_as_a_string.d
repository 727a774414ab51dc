BEGIN
{
	s = "a";
	s = copyin(0, 1);
}
