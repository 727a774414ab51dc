BEGIN
{
	setopt("quiet");
}

END
{
	printf("end\n");
}
