#pragma D option quiet

BEGIN
{
	x = 5;
	x = x * 2;
	printf("%d\n", x);
}
