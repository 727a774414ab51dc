#pragma D option quiet

BEGIN
{
	n = strtoll("12", 99);
}
