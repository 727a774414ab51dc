#pragma D option quiet

#pragma D option strsize=8

BEGIN
{
	s = "abcdefghij";
	printf("%s %d\n", s, strlen(s));
}
