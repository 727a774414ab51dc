#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strjoin("abc", "def"));
}
