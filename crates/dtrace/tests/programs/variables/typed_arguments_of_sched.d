#pragma D option quiet

sched:::enqueue
{
	printf("%d %s %d\n", args[0]->pr_lwpid, args[1]->pr_fname, args[2]->cpu_id);
}
