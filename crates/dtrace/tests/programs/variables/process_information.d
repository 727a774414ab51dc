#pragma D option quiet

syscall::read:entry
{
	printf("%d %d %s [%s]\n", curpsinfo->pr_pid, curpsinfo->pr_ppid, curpsinfo->pr_fname, curpsinfo->pr_psargs);
	printf("%d %d %d\n", curlwpsinfo->pr_lwpid, curlwpsinfo->pr_pri, curcpu->cpu_id);
}
