#pragma D option quiet

BEGIN
{
	printf("%u", (char)-1);
	printf("|\n");
}
