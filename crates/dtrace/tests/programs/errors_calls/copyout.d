BEGIN
{
	copyout(1, 2, 3);
}
