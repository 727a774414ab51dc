#pragma D option quiet

inline uint8_t SMALL = 300;

BEGIN
{
	printf("%d\n", SMALL);
}
