#pragma D option quiet

BEGIN
{
	printf("[%5.2s]", "abc");
	printf("|\n");
}
