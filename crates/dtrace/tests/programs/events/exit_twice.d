#pragma D option quiet

BEGIN
{
	exit(3);
	exit(4);
}

END
{
	printf("over\n");
}
