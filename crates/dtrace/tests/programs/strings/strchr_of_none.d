#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strchr("abc", 'x'));
}
