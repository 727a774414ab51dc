#!/usr/bin/env -S iotomy d -s
/*
 * A line for each block request that is done.
 *
 * iotomy d -s io-live.d
 */
#pragma D option quiet

io:::start
{
	began[arg0] = timestamp;
	by[arg0] = execname;
}

io:::done
/began[arg0]/
{
	printf("%-10s %s %12d %8d bytes %8d us  %s\n", args[1]->dev_statname,
	    args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_blkno, args[0]->b_bcount,
	    (timestamp - began[arg0]) / 1000, by[arg0]);
	began[arg0] = 0;
	by[arg0] = NULL;
}
