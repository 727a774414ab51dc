void x;
BEGIN
