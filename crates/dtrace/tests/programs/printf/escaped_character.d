#pragma D option quiet

BEGIN
{
	printf("%C", '\n');
	printf("|\n");
}
