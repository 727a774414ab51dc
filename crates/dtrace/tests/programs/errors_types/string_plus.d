BEGIN
{
	s = "a" + "b";
}
