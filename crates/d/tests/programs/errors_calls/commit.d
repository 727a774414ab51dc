BEGIN
{
	commit(1);
}
