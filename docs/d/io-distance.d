#!/usr/bin/env -S iotomy d -s
/*
 * How far block requests are from the end of the one before, in sectors.
 *
 * iotomy d -s io-distance.d
 */
#pragma D option quiet

uint64_t end[uint64_t];

io:::start
/end[args[0]->b_edev]/
{
	@[args[1]->dev_statname] = quantize(args[0]->b_blkno > end[args[0]->b_edev] ?
	    args[0]->b_blkno - end[args[0]->b_edev] : end[args[0]->b_edev] - args[0]->b_blkno);
}

io:::start
{
	end[args[0]->b_edev] = args[0]->b_blkno + args[0]->b_bcount / 512;
}
