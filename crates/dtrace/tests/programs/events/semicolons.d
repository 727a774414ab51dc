#pragma D option quiet;

BEGIN
{
	;;
	printf("a\n");;
	printf("b\n")
};
;
