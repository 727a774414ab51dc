#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strtok("/usr/bin/cat", "/"));
}
