#pragma D option quiet

tick-1s
{
	this->p = copyin(0x100, 1000000);
}
