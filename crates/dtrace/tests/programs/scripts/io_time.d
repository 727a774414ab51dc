#pragma D option quiet

io:::start
{
	start[args[0]->b_edev, args[0]->b_blkno] = timestamp;
}

io:::done
/start[args[0]->b_edev, args[0]->b_blkno]/
{
	this->elapsed = timestamp - start[args[0]->b_edev, args[0]->b_blkno];
	printf("%s %d us\n", args[1]->dev_statname, this->elapsed / 1000);
	start[args[0]->b_edev, args[0]->b_blkno] = 0;
}
