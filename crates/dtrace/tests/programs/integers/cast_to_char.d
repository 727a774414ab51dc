#pragma D option quiet

BEGIN
{
	printf("%d\n", (char)0x1ff);
}
