#pragma D option quiet

tick-1s
{
	printf("%a %a %a\n", 0x1000, 0x1010, 0xff0000);
}
