#!/usr/bin/env -S iotomy d -s
/*
 * How long a command waits for block devices, by program, in microseconds.
 *
 * iotomy d -s io-waits.d -c CMD
 */
#pragma D option quiet

io:::wait-start
/progenyof($target)/
{
	self->began = timestamp;
}

io:::wait-done
/self->began/
{
	@[execname] = quantize((timestamp - self->began) / 1000);
	self->began = 0;
}
