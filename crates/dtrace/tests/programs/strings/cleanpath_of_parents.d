#pragma D option quiet

BEGIN
{
	printf("[%s]\n", cleanpath("/../a"));
}
