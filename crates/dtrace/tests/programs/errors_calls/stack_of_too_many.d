BEGIN
{
	stack(1000);
}
