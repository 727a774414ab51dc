#pragma D option quiet

BEGIN
{
	printf("%d\n", *(int *)NULL);
}
