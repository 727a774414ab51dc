inline int X;
BEGIN
