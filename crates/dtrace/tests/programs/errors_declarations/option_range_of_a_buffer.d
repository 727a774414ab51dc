#pragma D option bufsize=100
BEGIN { exit(0); }
