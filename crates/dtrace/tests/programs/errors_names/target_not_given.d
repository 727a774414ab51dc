syscall:::entry
/pid == $target/
