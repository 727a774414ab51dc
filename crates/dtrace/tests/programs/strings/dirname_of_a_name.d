#pragma D option quiet

BEGIN
{
	printf("[%s]\n", dirname("cat"));
}
