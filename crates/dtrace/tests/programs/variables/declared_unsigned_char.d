#pragma D option quiet

unsigned char u;

BEGIN
{
	u = 256;
	printf("%d\n", u);
}
