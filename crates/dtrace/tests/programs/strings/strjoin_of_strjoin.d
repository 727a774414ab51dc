#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strjoin("a", strjoin("b", "c")));
}
