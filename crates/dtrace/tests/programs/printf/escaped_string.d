#pragma D option quiet

BEGIN
{
	printf("%S", "a\tb\"c\n");
	printf("|\n");
}
