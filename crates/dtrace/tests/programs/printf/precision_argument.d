#pragma D option quiet

BEGIN
{
	printf("[%.*s]", 2, "abc");
	printf("|\n");
}
