#pragma D option quiet

BEGIN
{
	printf("%o", 493);
	printf("|\n");
}
