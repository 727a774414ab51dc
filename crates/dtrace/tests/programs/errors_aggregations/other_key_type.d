BEGIN
{
	@a[execname] = count();
	@a[pid] = count();
}
