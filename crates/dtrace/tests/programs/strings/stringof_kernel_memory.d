#pragma D option quiet

BEGIN
{
	printf("%s %s\n", stringof(0x5000), (string)0x5001);
}

tick-1s
{
	printf("%s %s\n", stringof(0x5000), (string)0x5001);
}
