#pragma D option quiet

BEGIN
{
	printf("%d\n", "abc" == "a*");
}
