typedef int string;
BEGIN
