#pragma D option quiet

BEGIN
{
	printf("[%s]\n", tolower("AbC1"));
}
