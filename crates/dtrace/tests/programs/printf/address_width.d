#pragma D option quiet

BEGIN
{
	printf("[%?x]", 255);
	printf("|\n");
}
