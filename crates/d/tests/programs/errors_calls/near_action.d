BEGIN
{
	pritnf("a");
}
