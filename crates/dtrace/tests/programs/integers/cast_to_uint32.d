#pragma D option quiet

BEGIN
{
	printf("%d\n", (uint32_t)-1);
}
