#pragma D option quiet

BEGIN
{
	printf("[%s]\n", cleanpath("/usr//lib/./x/../libc.so"));
}
