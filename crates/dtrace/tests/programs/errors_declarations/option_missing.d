#pragma D option
BEGIN
