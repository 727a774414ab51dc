int pid;
BEGIN
