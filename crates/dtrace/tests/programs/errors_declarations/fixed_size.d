char buffer[10];
BEGIN
