BEGIN
{
	x = 5;
	x = "five";
}
