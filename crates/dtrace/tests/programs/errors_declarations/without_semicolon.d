int x
BEGIN
