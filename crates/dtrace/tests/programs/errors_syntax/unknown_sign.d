BEGIN
{
	x = 5 ? 6 \ 7;
}
