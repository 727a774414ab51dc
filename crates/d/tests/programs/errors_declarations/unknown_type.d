foo x;
BEGIN
