BEGIN
{
	system("ls");
}
