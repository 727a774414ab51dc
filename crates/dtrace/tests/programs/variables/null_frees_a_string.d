#pragma D option quiet

BEGIN
{
	s = "one";
	s = NULL;
	printf("[%s] %d\n", s, s == NULL);
}
