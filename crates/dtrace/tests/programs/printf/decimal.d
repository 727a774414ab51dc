#pragma D option quiet

BEGIN
{
	printf("%d %i", -5, 5);
	printf("|\n");
}
