#pragma D option quiet

BEGIN
{
	printf("%Y", (int64_t)1111111111000000000);
	printf("|\n");
}
