#!/usr/bin/env -S iotomy d -s
/*
 * Where a command spends its time: samples of its functions and their callers.
 *
 * iotomy d -s hot-functions.d -c CMD
 */
#pragma D option quiet

profile-997
/progenyof($target)/
{
	@[ustack(3)] = count();
}

END
{
	trunc(@, 5);
}
