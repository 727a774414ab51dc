BEGIN
{
	x = 5;
	self->y = 6;
}

END
{
	trace(x);
}
