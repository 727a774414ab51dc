#pragma D option quiet

BEGIN
{
	a[(char)1] = 5;
	printf("%d\n", a[257]);
}
