#pragma D option quiet

BEGIN
{
	printf("[%5d]", 42);
	printf("|\n");
}
