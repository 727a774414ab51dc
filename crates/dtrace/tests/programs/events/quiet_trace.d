#pragma D option quiet

BEGIN
{
	trace("hello");
	trace(5);
	trace("\n");
}
