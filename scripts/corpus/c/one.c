#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

static int less(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int main(void)
{
	static int x[100000];

	for (int i = 0; i < 100000; i++)
		x[i] = (i * 7919) % 100003;
	qsort(x, 100000, sizeof(*x), less);
	printf("%d %d\n", x[0], x[99999]);
	return 0;
}
