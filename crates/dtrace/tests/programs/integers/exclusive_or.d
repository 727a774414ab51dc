#pragma D option quiet

BEGIN
{
	printf("%d\n", (1 ^^ 0) + (1 ^^ 1) * 10 + (0 ^^ 0) * 100);
}
