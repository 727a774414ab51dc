#pragma D option quiet

int zero;

BEGIN
{
	x = 7;
	y = 1 / zero;
	x = 8;
}

END
{
	printf("%d\n", x);
}
