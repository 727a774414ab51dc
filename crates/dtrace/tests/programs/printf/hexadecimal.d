#pragma D option quiet

BEGIN
{
	printf("%x %X", 255, 255);
	printf("|\n");
}
