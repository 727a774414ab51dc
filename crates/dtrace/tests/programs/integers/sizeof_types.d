#pragma D option quiet

BEGIN
{
	printf("%d\n", sizeof (char) + sizeof (short) * 10 + sizeof (int) * 100 + sizeof (long) * 1000);
}
