#!/usr/bin/env -S iotomy d -s
/*
 * Block requests and bytes, each second.
 *
 * iotomy d -s io-rates.d
 */
#pragma D option quiet

io:::start
{
	@requests[args[1]->dev_statname] = count();
	@bytes[args[1]->dev_statname] = sum(args[0]->b_bcount);
}

tick-1s
{
	printf("%Y\n", walltimestamp);
	printa("  %-10s %@8d requests, %@12d bytes\n", @requests, @bytes);
	clear(@requests);
	clear(@bytes);
}
