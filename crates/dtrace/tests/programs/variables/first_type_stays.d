#pragma D option quiet

BEGIN
{
	x = (char)1;
	x = 511;
	printf("%d\n", x);
}
