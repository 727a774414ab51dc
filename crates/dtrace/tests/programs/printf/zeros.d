#pragma D option quiet

BEGIN
{
	printf("[%05d]", -42);
	printf("|\n");
}
