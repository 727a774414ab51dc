enum { A = pid };
BEGIN
