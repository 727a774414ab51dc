BEGIN
{
	self->start = 1;
	trace(self->strat);
}
