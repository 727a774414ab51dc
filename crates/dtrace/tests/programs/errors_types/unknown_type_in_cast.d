BEGIN
{
	x = (foo)5;
}
