#pragma D option quiet

BEGIN
{
	printf("[%s]\n", toupper("abC1"));
}
