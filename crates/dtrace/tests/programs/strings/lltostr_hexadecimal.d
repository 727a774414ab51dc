#pragma D option quiet

BEGIN
{
	printf("[%s]\n", lltostr(255, 16));
}
