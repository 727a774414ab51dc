#pragma D option quiet

BEGIN
{
	printf("hello");
	printf("|\n");
}
