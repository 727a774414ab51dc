#pragma D option quiet
#pragma D option strsize=8

BEGIN
{
	printf("%s\n", strjoin("abc", "defg"));
}
