#pragma D option quiet

BEGIN
{
	x = 1;
	x = 4294967297;
	printf("%d\n", x);
}
