#pragma D option quiet

BEGIN
{
	x = 0;
	printf("%d\n", x != 0 && 10 / x);
}
