enum { A, A };
BEGIN
