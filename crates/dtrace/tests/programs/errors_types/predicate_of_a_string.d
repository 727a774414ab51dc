syscall::read:entry
/execname/
{
	trace(1);
}
