syscall::mmap64:entry,
syscall::read:entry,
syscall::write:entry
/progenyof($1) && pid != $1/
{ self->t = vtimestamp; }
syscall::mmap64:return,
syscall::read:return,
syscall::write:return
/ self->t /
{
@[probefunc,pid,execname] = quantize(vtimestamp - self->t);
@total["total", pid, execname] = sum(vtimestamp - self->t);
self->t = 0;
}
