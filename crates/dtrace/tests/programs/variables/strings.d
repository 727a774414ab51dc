#pragma D option quiet

BEGIN
{
	s = "one";
	t = s;
	s = "two";
	printf("%s %s\n", s, t);
}
