#pragma D option quiet
#pragma D option strsize=8

BEGIN
{
	s = strjoin("abcd", "efgh");
}
