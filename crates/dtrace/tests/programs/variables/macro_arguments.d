#!/usr/sbin/dtrace -qs
#pragma D option quiet

BEGIN
{
	printf("%d %s %s %d %d\n", $1, $$2, $$1, $target, $pid);
	exit($1);
}
