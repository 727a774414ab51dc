#pragma D option quiet

BEGIN
{
	printf("%d\n", sizeof timestamp);
}
