BEGIN
{
	x = ;
	y = 5 + ;
}
