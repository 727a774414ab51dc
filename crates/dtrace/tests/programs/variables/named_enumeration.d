#pragma D option quiet

enum numbers { ONE, TWO, };

BEGIN
{
	printf("%d\n", TWO);
}
