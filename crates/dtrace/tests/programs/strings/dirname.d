#pragma D option quiet

BEGIN
{
	printf("[%s]\n", dirname("/usr/bin/cat"));
}
