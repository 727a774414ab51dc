#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("-42"));
}
