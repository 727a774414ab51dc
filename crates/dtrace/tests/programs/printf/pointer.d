#pragma D option quiet

BEGIN
{
	printf("%p", 4096);
	printf("|\n");
}
