#pragma D option quiet

BEGIN
{
	printf("%d\n", (3 > 2) + (3 >= 3) + (2 < 3) + (2 <= 1));
}
