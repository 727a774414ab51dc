#pragma D option quiet

syscall::read:entry
{
	printf("%s %d %d %d %d %d %s\n", execname, pid, ppid, tid, uid, gid, cwd);
	printf("%d %d %d\n", timestamp, vtimestamp, walltimestamp);
	printf("%s:%s:%s:%s %d\n", probeprov, probemod, probefunc, probename, epid);
	printf("%d %d %d %d\n", arg0, arg1, arg9, cpu);
}
