syscall::r[ea:entry
