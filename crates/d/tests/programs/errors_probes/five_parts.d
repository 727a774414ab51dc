a:syscall::read:entry
