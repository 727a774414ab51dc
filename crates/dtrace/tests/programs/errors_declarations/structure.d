psinfo_t *p;
BEGIN
