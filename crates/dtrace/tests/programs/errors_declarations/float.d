float x;
BEGIN
