BEGIN
{
	trace(curpsinfo->pr_pod);
}
