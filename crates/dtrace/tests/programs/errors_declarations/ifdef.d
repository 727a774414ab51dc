#ifdef FOO
BEGIN
#endif
