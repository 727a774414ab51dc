BEGIN
{
	@a[pid] = count();
	printa("%d %d %@d\n", @a);
}
