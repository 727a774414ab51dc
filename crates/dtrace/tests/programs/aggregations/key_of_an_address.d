#pragma D option quiet

tick-1s
{
	@[func(arg0)] = count();
}
