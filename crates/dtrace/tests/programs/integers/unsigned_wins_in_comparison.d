#pragma D option quiet

BEGIN
{
	printf("%d\n", -1 < (uint64_t)1);
}
