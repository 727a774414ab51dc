BEGIN
{
	s = "a";
	s = 5;
}
