int;
BEGIN
