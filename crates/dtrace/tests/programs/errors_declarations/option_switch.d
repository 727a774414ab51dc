#pragma D option quiet=maybe
BEGIN
