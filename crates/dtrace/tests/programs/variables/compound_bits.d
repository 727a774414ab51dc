#pragma D option quiet

BEGIN
{
	x = 12;
	x |= 3;
	x &= 13;
	x ^= 1;
	x <<= 2;
	x >>= 1;
	printf("%d\n", x);
}
