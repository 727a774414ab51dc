#pragma D option quiet

BEGIN { printf("1 "); }
END { printf("4\n"); }
BEGIN { printf("2 "); }
dtrace:::BEGIN { printf("3 "); }
