#!/usr/bin/env -S iotomy d -s
/*
 * How long block requests take, by device, in microseconds.
 *
 * iotomy d -s io-times.d
 */
#pragma D option quiet

io:::start
{
	began[arg0] = timestamp;
}

io:::done
/began[arg0]/
{
	@[args[1]->dev_statname] = quantize((timestamp - began[arg0]) / 1000);
	began[arg0] = 0;
}
