syscall::read:entry,
fbt:::entry,
sysfoo:::
{
	trace(1);
}
