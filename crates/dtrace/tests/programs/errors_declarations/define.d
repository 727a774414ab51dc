#define LIMIT 5
BEGIN
