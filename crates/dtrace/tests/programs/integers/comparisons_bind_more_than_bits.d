#pragma D option quiet

BEGIN
{
	printf("%d\n", 6 & 3 == 3);
}
