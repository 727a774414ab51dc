#pragma D option quiet

typedef uint16_t port_t;
port_t n;

BEGIN
{
	n = 70000;
	printf("%d\n", n);
}
