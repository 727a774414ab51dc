#pragma D option quiet

enum { IDLE, BUSY };

int state;

BEGIN
{
	state = IDLE;
}

syscall::read:entry
/state == IDLE/
{
	state = BUSY;
	transitions++;
}

syscall::read:return
/state == BUSY/
{
	state = IDLE;
	transitions++;
}

END
{
	printf("%d %s\n", transitions, state == IDLE ? "idle" : "busy");
}
