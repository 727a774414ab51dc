#pragma D option quiet

BEGIN
{
	printf("%d\n", 2KiB + 1ms);
}
