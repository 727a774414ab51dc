#pragma D option quiet

BEGIN
{
	x = y = 7;
	printf("%d %d\n", x, y);
}
