#pragma D option quiet

BEGIN
{
	printf("%+d %+d", 1, -1);
	printf("|\n");
}
