#pragma D option quiet

BEGIN
{
	printf("%d\n", index("hello", "l"));
}
