syscall::a`b:entry
