#pragma D option quiet

BEGIN
{
	printf("%d\n", (x = 3) + x);
}
