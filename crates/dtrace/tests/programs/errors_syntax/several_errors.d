BEGIN
{
	x = ;
	trace(y);
	z = 1 +* 2;
}

END
{
	printf("%d\n");
}
