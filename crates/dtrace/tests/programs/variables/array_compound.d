#pragma D option quiet

BEGIN
{
	a[1] += 5;
	a[1] *= 3;
	printf("%d\n", a[1]);
}
