#pragma D option quiet

syscall:::return
/call == "read" && duration > 1ms/
{
	printf("%s %d\n", path, bytes);
}
