#pragma D option quiet

BEGIN
{
	printf("%d\n", sizeof (x = 5));
}
