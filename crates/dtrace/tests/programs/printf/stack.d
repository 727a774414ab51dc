#pragma D option quiet

tick-1s
{
	printf("at%k", stack());
	printf("at%-4k.\n", ustack(1));
}
