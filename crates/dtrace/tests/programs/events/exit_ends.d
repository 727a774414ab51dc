#pragma D option quiet

syscall::read:entry
{
	printf("%d\n", ++n);
}

syscall::read:entry
/n == 2/
{
	exit(0);
	printf("exits\n");
}

syscall::read:entry
{
	printf("second\n");
}

END
{
	printf("end\n");
}
