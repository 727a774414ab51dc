#pragma D option quiet

BEGIN
{
	printf("%d\n", (short)0x18000);
}
