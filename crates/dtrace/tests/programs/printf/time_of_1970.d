#pragma D option quiet

BEGIN
{
	printf("%Y", (int64_t)0);
	printf("|\n");
}
