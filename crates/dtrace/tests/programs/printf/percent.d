#pragma D option quiet

BEGIN
{
	printf("100%%");
	printf("|\n");
}
