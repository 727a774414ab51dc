BEGIN
{
	trace((short)-1);
	trace((char)-1);
}
