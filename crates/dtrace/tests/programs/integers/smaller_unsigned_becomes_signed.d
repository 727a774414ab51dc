#pragma D option quiet

BEGIN
{
	printf("%d\n", (uint8_t)1 - 2);
}
