#pragma D option quiet

syscall::read:entry
{
	printf("%s\n", copyinstr(arg1));
}

ERROR
{
	printf("clause %d, fault %d, address %x, %s\n", arg1, arg4, arg5, probename);
}
