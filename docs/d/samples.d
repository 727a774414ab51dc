#!/usr/bin/env -S iotomy d -s
/*
 * Which programs are on a CPU, 97 times a second.
 *
 * iotomy d -s samples.d
 */
#pragma D option quiet

profile-97
/pid/
{
	@[execname] = count();
}
