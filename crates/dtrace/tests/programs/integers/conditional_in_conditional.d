#pragma D option quiet

BEGIN
{
	printf("%d\n", 0 ? 1 : 0 ? 2 : 3);
}
