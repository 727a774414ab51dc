#pragma D option quiet

BEGIN
{
	printf("%d\n", (1, 2, 3));
}
