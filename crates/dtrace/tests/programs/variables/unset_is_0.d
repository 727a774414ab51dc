#pragma D option quiet

int x;
string s;

BEGIN
{
	printf("%d [%s]\n", x, s);
}
