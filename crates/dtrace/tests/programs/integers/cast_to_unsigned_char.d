#pragma D option quiet

BEGIN
{
	printf("%d\n", (unsigned char)0x1ff);
}
