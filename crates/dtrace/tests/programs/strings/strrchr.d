#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strrchr("/usr/bin", '/'));
}
