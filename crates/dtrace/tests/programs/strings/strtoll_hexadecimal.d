#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("ff", 16));
}
