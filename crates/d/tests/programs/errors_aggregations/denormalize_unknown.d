BEGIN
{
	denormalize(@b);
}
