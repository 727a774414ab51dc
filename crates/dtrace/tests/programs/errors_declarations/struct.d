struct foo { int x; };
BEGIN
