#pragma D option quiet

BEGIN
{
	x = 10;
	x += 5;
	x -= 3;
	x *= 2;
	x /= 3;
	x %= 5;
	printf("%d\n", x);
}
