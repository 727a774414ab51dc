#!/usr/bin/env -S iotomy d -s
/*
 * How large the block requests of each program are.
 *
 * iotomy d -s io-sizes.d
 */
#pragma D option quiet

io:::start
{
	@[execname, args[0]->b_flags & B_READ ? "read" : "write"] = quantize(args[0]->b_bcount);
}
