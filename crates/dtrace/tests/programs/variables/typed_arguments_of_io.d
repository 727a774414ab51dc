#pragma D option quiet

io:::start
{
	printf("%s %d %s\n", args[1]->dev_statname, args[0]->b_bcount, args[2]->fi_pathname);
}
