io:::start,
sched:::enqueue
{
	trace(args[0]->b_bcount);
}
