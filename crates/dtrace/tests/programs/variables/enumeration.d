#pragma D option quiet

enum { RED, GREEN = 5, BLUE, NEXT = GREEN * 2 + 1 };

BEGIN
{
	printf("%d %d %d %d\n", RED, GREEN, BLUE, NEXT);
}
