#pragma D option quiet

BEGIN
{
	printf("%s %d\n", $1, strlen($1));
}
