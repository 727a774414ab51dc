inline int X = "a";
BEGIN
