#pragma D option quiet

BEGIN
{
	printf("%ld %lld %hd %llx", 5, 5, 5, 5);
	printf("|\n");
}
