#pragma D option quiet

tick-1s
{
	@[stack(2)] = count();
}
