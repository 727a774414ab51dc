#pragma D option quiet

BEGIN
{
	a[1] = 2;
	b[a[1]] = 7;
	printf("%d\n", b[2]);
}
