#pragma D depends_on provider io
BEGIN
