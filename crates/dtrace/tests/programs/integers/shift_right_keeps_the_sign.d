#pragma D option quiet

BEGIN
{
	printf("%d\n", -16 >> 2);
}
