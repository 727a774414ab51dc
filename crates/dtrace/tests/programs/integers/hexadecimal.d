#pragma D option quiet

BEGIN
{
	printf("%d\n", 0xff + 0XA);
}
