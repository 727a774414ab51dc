#pragma D option quiet

inline int A = 5;
inline int B = A + 1;

BEGIN
{
	printf("%d\n", B);
}
