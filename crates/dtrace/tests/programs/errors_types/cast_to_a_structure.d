BEGIN
{
	x = (struct proc *)arg0;
}
