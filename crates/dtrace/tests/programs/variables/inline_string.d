#pragma D option quiet

inline string NAME = "cat";

BEGIN
{
	printf("%s\n", NAME);
}
