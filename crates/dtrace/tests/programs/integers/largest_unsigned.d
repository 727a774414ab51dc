#pragma D option quiet

BEGIN
{
	printf("%d\n", 18446744073709551615);
}
