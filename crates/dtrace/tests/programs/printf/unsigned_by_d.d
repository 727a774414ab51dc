#pragma D option quiet

BEGIN
{
	printf("%d", (uint64_t)-1);
	printf("|\n");
}
