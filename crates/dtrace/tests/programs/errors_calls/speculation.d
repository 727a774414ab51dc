BEGIN
{
	self->s = speculation();
}
