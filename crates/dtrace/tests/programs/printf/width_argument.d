#pragma D option quiet

BEGIN
{
	printf("[%*d]", 6, 42);
	printf("|\n");
}
