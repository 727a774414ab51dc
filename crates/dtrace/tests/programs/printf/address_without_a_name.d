#pragma D option quiet

BEGIN
{
	printf("%a", 0x1234ul);
	printf("|\n");
}
