#pragma D option quiet

BEGIN
{
	printf("%s=%d, %s=%x", "a", 1, "b", 255);
	printf("|\n");
}
