#pragma D option quiet

inline int LIMIT = 5;

BEGIN
{
	printf("%d\n", LIMIT * 2);
}
