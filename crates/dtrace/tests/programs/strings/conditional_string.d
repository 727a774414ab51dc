#pragma D option quiet

BEGIN
{
	printf("[%s]\n", 1 ? "yes" : "no");
}
