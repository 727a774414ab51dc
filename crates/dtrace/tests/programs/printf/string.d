#pragma D option quiet

BEGIN
{
	printf("[%s]", "abc");
	printf("|\n");
}
