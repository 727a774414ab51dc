#!/usr/bin/env -S iotomy d -s
/*
 * Where in its files a command reads: in order, or here and there.
 *
 * iotomy d -s file-offsets.d -c CMD
 */
#pragma D option quiet

syscall::read:entry
/progenyof($target) && fds[arg0].fi_fs != "pipefs"/
{
	@[fds[arg0].fi_name] = lquantize(fds[arg0].fi_offset / 1024, 0, 1024, 128);
}
