#pragma D option quiet

BEGIN
{
	printf("%d\n", 5 > 3 ? 10 : 20);
}
