BEGIN
{
	printf("%ws", "a");
}
