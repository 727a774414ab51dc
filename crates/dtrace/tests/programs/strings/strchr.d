#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strchr("/usr/bin", 'b'));
}
