#pragma D option quiet

syscall::read:entry
{
	@b["b"] = count();
	@a["a"] = sum(arg2);
}
