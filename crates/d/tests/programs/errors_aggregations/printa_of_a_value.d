BEGIN
{
	printa(pid);
}
