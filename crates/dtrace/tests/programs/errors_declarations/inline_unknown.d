inline int X = y;
BEGIN
