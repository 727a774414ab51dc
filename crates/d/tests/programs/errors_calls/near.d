BEGIN
{
	strlne("a");
}
