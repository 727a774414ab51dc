BEGIN
{
	@a[pid] = count();
	printa(@a[pid]);
}
