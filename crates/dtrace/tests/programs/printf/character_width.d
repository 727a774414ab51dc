#pragma D option quiet

BEGIN
{
	printf("[%3c]", 'a');
	printf("|\n");
}
