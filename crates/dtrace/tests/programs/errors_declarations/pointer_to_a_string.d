string *s;
BEGIN
