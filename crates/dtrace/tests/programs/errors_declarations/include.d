#include <sys/types.h>
BEGIN
