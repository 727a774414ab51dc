{
	trace(1);
}
