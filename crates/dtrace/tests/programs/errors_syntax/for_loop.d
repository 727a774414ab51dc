BEGIN
{
	for (i = 0; i < 5; i++) trace(i);
}
