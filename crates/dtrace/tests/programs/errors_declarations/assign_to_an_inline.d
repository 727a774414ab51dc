inline int X = 1;
BEGIN
{
	X = 2;
}
