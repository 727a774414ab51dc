translator foo_t < int *x > { a = 5; };
BEGIN
