BEGIN
{
	strlen("a") = 5;
}
