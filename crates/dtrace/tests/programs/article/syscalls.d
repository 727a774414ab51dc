syscall:::entry
/progenyof($1) && pid!=$1/
{ @[probefunc, execname, pid] = count();
@["total", execname, pid ] = count();
}
syscall::read:return,
syscall::write:return
/progenyof($1) && pid!=$1/
{ @rw[probefunc, execname, pid] = quantize(arg1); }
END
{ printf("\n%-20s%-10s%10s%10s\n", "SysCall", "Exec", "Pid", "Count");
printa("%-20s%-10s%10d%10@d\n", @);
printa("%-20s%-10s%10d%@d\n", @rw);
}
