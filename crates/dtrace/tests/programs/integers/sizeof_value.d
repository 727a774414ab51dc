#pragma D option quiet

BEGIN
{
	printf("%d\n", sizeof (1 + 1l));
}
