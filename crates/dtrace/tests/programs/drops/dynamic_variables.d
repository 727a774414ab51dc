#pragma D option quiet
#pragma D option dynvarsize=160

syscall::read:entry
{
	a[arg0] = 1;
	printf("%d", a[arg0]);
}
