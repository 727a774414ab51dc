#pragma D option quiet

BEGIN
{
	printf("%x", (short)-1);
	printf("|\n");
}
