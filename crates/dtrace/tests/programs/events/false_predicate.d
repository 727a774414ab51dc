BEGIN
/0/
{
}
