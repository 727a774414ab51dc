#pragma D option quiet

BEGIN
{
	printf("%u", -1l);
	printf("|\n");
}
