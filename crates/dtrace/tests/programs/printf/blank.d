#pragma D option quiet

BEGIN
{
	printf("[% d]", 5);
	printf("|\n");
}
