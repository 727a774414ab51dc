#pragma D option quiet

BEGIN
{
	printf("%d\n", 2147483647l + 1);
}
