#pragma D option quiet

BEGIN
/10 / 5 == 2/
{
	printf("yes\n");
}
