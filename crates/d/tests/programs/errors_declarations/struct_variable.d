struct foo *x;
BEGIN
