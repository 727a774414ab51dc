#pragma D option quiet

int zero;

BEGIN
/5 / zero/
{
	printf("no\n");
}

BEGIN
{
	printf("yes\n");
}
