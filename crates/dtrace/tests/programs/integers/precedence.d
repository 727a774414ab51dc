#pragma D option quiet

BEGIN
{
	printf("%d\n", 2 + 3 * 4 - 10 / 5);
}
