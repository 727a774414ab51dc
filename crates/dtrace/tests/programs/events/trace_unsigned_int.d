BEGIN
{
	trace((uint32_t)-1);
}
