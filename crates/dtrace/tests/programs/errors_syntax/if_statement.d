BEGIN
{
	if (pid == 1) trace(1);
}
