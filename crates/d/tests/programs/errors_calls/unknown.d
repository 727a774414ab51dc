BEGIN
{
	foo(1);
}
