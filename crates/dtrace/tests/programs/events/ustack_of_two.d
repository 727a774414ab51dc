#pragma D option quiet

tick-1s
{
	ustack(2);
}
