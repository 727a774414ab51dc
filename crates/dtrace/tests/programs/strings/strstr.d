#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strstr("abcdef", "cd"));
}
