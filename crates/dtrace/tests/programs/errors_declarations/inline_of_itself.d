inline int X = X + 1;
BEGIN
