#pragma D option quiet

BEGIN
{
	printf("%d\n", (char)255 + 1);
}
