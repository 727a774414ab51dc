#pragma D option quiet

BEGIN
{
	printf("%d\n", (uint64_t)-1 / 2);
}
