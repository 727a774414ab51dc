#pragma D option quiet

BEGIN
{
	printf("[%6.3d]", -5);
	printf("|\n");
}
