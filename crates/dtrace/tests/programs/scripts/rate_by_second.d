#pragma D option quiet

syscall::read:entry
{
	@bytes = sum(arg2);
	n++;
}

tick-1s
/n > 0/
{
	normalize(@bytes, 1024);
	printa("%@d KiB in ", @bytes);
	printf("%d\n", n);
	clear(@bytes);
	n = 0;
}
