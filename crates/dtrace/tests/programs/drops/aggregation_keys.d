#pragma D option quiet
#pragma D option aggsize=100

syscall::read:entry
{
	@[arg0] = count();
}
