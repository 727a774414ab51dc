#pragma D option quiet

BEGIN
{
	printf("%#x %#o", 255, 8);
	printf("|\n");
}
