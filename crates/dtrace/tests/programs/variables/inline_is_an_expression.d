#pragma D option quiet

int x;
inline int TWICE = x * 2;

BEGIN
{
	x = 20;
	printf("%d\n", TWICE);
	x = 4;
	printf("%d\n", TWICE);
}
