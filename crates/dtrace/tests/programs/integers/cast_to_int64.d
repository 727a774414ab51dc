#pragma D option quiet

BEGIN
{
	printf("%d\n", (int64_t)(uint32_t)-1);
}
