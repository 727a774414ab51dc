#pragma D option quiet

BEGIN
{
	printf("[%-22Y]", (int64_t)0);
	printf("|\n");
}
