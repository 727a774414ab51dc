#pragma D option quiet

/* A name of the probe and one of the program in the same place, and the same everywhere. */
syscall::read:entry
{
	@mixed[probefunc] = count();
	@chosen[arg0 ? probefunc : execname, probename] = count();
	@same[probename, execname, arg0] = count();
}

syscall::write:entry
{
	@mixed[execname] = count();
	@same[probename, execname, arg0] = count();
	@same[probename, execname, 7] = count();
}
