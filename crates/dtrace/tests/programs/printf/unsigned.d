#pragma D option quiet

BEGIN
{
	printf("%u", -1);
	printf("|\n");
}
