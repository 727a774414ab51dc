#pragma D option quiet

char c;

BEGIN
{
	c = 300;
	printf("%d\n", c);
}
