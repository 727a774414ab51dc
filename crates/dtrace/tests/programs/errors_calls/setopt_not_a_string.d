BEGIN
{
	setopt(5);
}
