#pragma D option quiet

BEGIN
{
	a["x"] = 1;
	a["y"]++;
	a["y"]++;
	printf("%d %d\n", a["x"], a["y"]);
}
