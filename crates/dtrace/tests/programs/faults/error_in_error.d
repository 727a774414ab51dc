#pragma D option quiet

int zero;

BEGIN
{
	n = 5 / zero;
}

ERROR
{
	n = 6 / zero;
}
