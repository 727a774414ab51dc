#pragma D option quiet

BEGIN
{
	x = 0;
	printf("%d\n", x ? 10 / x : 7);
}
