int a[void];
BEGIN
