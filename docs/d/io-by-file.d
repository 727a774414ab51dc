#!/usr/bin/env -S iotomy d -s
/*
 * Bytes that go to and come from devices, by program and file.
 *
 * iotomy d -s io-by-file.d
 */
#pragma D option quiet

io:::start
{
	@[execname, args[1]->dev_statname, args[2]->fi_pathname] = sum(args[0]->b_bcount);
}

END
{
	printf("%-16s %-10s %12s  %s\n", "PROGRAM", "DEVICE", "BYTES", "FILE");
	printa("%-16s %-10s %@12d  %s\n", @);
}
