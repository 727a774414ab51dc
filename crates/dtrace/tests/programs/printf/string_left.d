#pragma D option quiet

BEGIN
{
	printf("[%-6s]", "abc");
	printf("|\n");
}
