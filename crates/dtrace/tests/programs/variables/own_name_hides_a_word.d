#pragma D option quiet

BEGIN
{
	bytes = 3;
	path = "own";
	printf("%d %s\n", bytes, path);
}
