#pragma D option quiet

BEGIN
{
	printf("[%.3d]", 5);
	printf("|\n");
}
