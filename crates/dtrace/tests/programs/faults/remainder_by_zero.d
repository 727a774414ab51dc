#pragma D option quiet

int x;

BEGIN
{
	y = 5 % x;
}
