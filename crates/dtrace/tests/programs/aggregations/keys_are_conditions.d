#pragma D option quiet

syscall:::entry
{
	@[arg2 > 10 ? "large" : "small"] = count();
}
