#pragma D option quiet

char c;

BEGIN
{
	c = 127;
	c++;
	printf("%d\n", c);
}
