#pragma D option quiet

BEGIN
{
	a[1, "x"] = "first";
	a[1, "y"] = "second";
	printf("%s %s [%s]\n", a[1, "x"], a[1, "y"], a[2, "x"]);
}
