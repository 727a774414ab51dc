#pragma D option quiet

BEGIN
{
	@[(char)65, (short)66, 67, 68l] = count();
}
