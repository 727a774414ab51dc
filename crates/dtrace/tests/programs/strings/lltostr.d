#pragma D option quiet

BEGIN
{
	printf("[%s]\n", lltostr(-42));
}
