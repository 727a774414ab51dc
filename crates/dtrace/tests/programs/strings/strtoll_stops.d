#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("12ab"));
}
