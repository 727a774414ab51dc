BEGIN
{
	trace(`kmem_flags);
}
