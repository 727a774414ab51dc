BEGIN
{
	curpsinfo->pr_pid = 5;
}
