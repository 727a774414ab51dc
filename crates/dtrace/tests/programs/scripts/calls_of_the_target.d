#pragma D option quiet

syscall:::entry
/pid == $target/
{
	@[probefunc] = count();
}
