BEGIN
{
	freopen("a");
}
