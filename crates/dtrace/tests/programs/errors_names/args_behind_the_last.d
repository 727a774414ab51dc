io:::start
{
	trace(args[7]);
}
