#pragma D option quiet

BEGIN
{
	printf("%x", -1);
	printf("|\n");
}
