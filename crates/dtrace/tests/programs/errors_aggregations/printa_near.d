BEGIN
{
	@reads = count();
	printa(@raeds);
}
