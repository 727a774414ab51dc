#pragma D option quiet

BEGIN
{
	printf("%d\n", 100 / 10 / 5 - 1 - 1);
}
