#pragma D option quiet

uint32_t u;

BEGIN
{
	u = -1;
	printf("%d\n", u);
}
