#pragma D option quiet

BEGIN
{
	printf("[%.2s]", "abc");
	printf("|\n");
}
