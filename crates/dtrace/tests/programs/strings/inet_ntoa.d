#pragma D option quiet

BEGIN
{
	this->p = alloca(8);
	printf("%s\n", inet_ntoa(this->p));
}
