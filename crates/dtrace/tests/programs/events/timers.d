#pragma D option quiet

profile-97hz
{
	@samples = count();
}

tick-1s
{
	printf("second %d\n", ++n);
}

tick-5sec
{
	exit(0);
}
