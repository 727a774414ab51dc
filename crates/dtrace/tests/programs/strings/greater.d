#pragma D option quiet

BEGIN
{
	printf("%d\n", "b" >= "a");
}
