BEGIN
{
	setopt("quite");
}
