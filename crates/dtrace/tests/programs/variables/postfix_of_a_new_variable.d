#pragma D option quiet

BEGIN
{
	n++;
	n++;
	printf("%d\n", n);
}
