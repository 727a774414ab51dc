#pragma D option quiet

proc:::exec-success
{
	printf("%Y %d %s\n", walltimestamp, pid, curpsinfo->pr_psargs);
}
