#pragma D option quiet

BEGIN
{
	x = 0;
	printf("before\n");
	printf("%d\n", 10 / x);
	printf("after\n");
}

END
{
	printf("end\n");
}
