#pragma D option quiet

BEGIN
{
	printf("%c%c", 'a', 98);
	printf("|\n");
}
