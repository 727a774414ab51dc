//! How many arguments a call has, and which of them is a descriptor.

/// How many arguments call `name` has; `None` where that is not known here.
pub fn arity(name: &str) -> Option<u8> {
    let count = match name {
        "getpid" | "sched_yield" | "pause" | "getuid" | "getgid" | "geteuid" | "getegid"
        | "getppid" | "getpgrp" | "setsid" | "munlockall" | "vhangup" | "sync" | "fork"
        | "vfork" | "gettid" | "restart_syscall" | "inotify_init" | "rt_sigreturn" => 0,
        "close" | "brk" | "pipe" | "dup" | "exit" | "exit_group" | "chdir" | "fchdir" | "rmdir"
        | "unlink" | "umask" | "getsid" | "getpgid" | "fsync" | "fdatasync" | "syncfs"
        | "chroot" | "acct" | "swapoff" | "alarm" | "times" | "sysinfo" | "uname" | "time"
        | "set_tid_address" | "mlockall" | "epoll_create" | "epoll_create1" | "eventfd"
        | "inotify_init1" | "io_destroy" | "timer_delete" | "timer_getoverrun" | "unshare"
        | "userfaultfd" | "setuid" | "setgid" | "shmdt" | "personality" | "uselib" => 1,
        "open" | "stat" | "lstat" | "fstat" | "creat" | "access" | "rename" | "mkdir" | "link"
        | "symlink" | "chmod" | "fchmod" | "truncate" | "ftruncate" | "dup2" | "munmap"
        | "getcwd" | "kill" | "tkill" | "listen" | "shutdown" | "nanosleep" | "flock"
        | "gettimeofday" | "settimeofday" | "clock_gettime" | "clock_settime" | "clock_getres"
        | "getrlimit" | "setrlimit" | "getrusage" | "statfs" | "fstatfs" | "utime" | "utimes"
        | "getitimer" | "mlock" | "munlock" | "pipe2" | "eventfd2" | "timerfd_create"
        | "timerfd_gettime" | "umount2" | "sigaltstack" | "rt_sigpending" | "rt_sigsuspend"
        | "swapon" | "getpriority" | "memfd_create" | "pidfd_open" | "removexattr"
        | "lremovexattr" | "fremovexattr" | "inotify_rm_watch" | "arch_prctl" | "setns"
        | "io_setup" | "pivot_root" | "set_robust_list" | "setpgid" | "io_uring_setup"
        | "clone3" | "pkey_alloc" | "getgroups" | "setgroups" => 2,
        "read" | "write" | "readv" | "writev" | "poll" | "lseek" | "mprotect"
        | "rt_sigqueueinfo" | "ioctl" | "madvise" | "mincore" | "msync" | "socket" | "connect"
        | "accept" | "bind" | "getsockname" | "getpeername" | "sendmsg" | "recvmsg" | "execve"
        | "tgkill" | "chown" | "fchown" | "lchown" | "fcntl" | "readlink" | "mknod"
        | "getdents" | "getdents64" | "setitimer" | "readahead" | "dup3" | "mkdirat"
        | "unlinkat" | "fchmodat" | "faccessat" | "futimesat" | "symlinkat"
        | "inotify_add_watch" | "open_tree" | "close_range" | "sched_getaffinity"
        | "sched_setaffinity" | "getrandom" | "mlock2" | "semop" | "io_submit" | "signalfd"
        | "listxattr" | "llistxattr" | "flistxattr" | "getcpu" | "setpriority" | "shmget"
        | "shmat" | "ioprio_set" | "get_robust_list" | "pidfd_getfd" | "sched_setscheduler"
        | "sched_setattr" | "fspick" | "timer_create" | "map_shadow_stack" | "shmctl"
        | "membarrier" | "mseal" => 3,
        "pread64" | "pwrite64" | "rt_sigaction" | "rt_sigprocmask" | "sendfile" | "sendfile64"
        | "wait4" | "socketpair" | "openat" | "openat2" | "newfstatat" | "fstatat64"
        | "readlinkat" | "mknodat" | "renameat" | "fchmodat2" | "faccessat2" | "utimensat"
        | "accept4" | "epoll_wait" | "epoll_ctl" | "clock_nanosleep" | "timerfd_settime"
        | "signalfd4" | "rt_sigtimedwait" | "fallocate" | "fadvise64" | "sync_file_range"
        | "vmsplice" | "tee" | "getxattr" | "lgetxattr" | "fgetxattr" | "prlimit64"
        | "quotactl" | "sendmmsg" | "semtimedop" | "msgsnd" | "ptrace" | "pidfd_send_signal"
        | "io_uring_register" | "rseq" | "cachestat" | "timer_settime" | "reboot"
        | "migrate_pages" | "sched_getattr" | "listxattrat" | "removexattrat" | "semctl" => 4,
        "select" | "preadv" | "pwritev" | "mremap" | "setsockopt" | "getsockopt" | "prctl"
        | "linkat" | "renameat2" | "fchownat" | "execveat" | "ppoll" | "waitid" | "statx"
        | "setxattr" | "lsetxattr" | "fsetxattr" | "mount" | "io_getevents" | "msgrcv"
        | "clone" | "recvmmsg" | "name_to_handle_at" | "move_mount" | "fanotify_mark"
        | "mq_timedsend" | "mq_timedreceive" | "futex_waitv" | "process_madvise"
        | "remap_file_pages" | "mount_setattr" | "file_getattr" | "file_setattr" => 5,
        "mmap" | "sendto" | "recvfrom" | "futex" | "pselect6" | "epoll_pwait" | "epoll_pwait2"
        | "splice" | "copy_file_range" | "preadv2" | "pwritev2" | "process_vm_readv"
        | "process_vm_writev" | "io_uring_enter" | "io_pgetevents" | "futex_wait" | "mbind"
        | "move_pages" | "setxattrat" | "getxattrat" => 6,
        _ => return None,
    };
    Some(count)
}

/// The argument (0-based) of call `name` that is the descriptor of the file it is about.
pub fn descriptor(name: &str) -> Option<u8> {
    let at = match name {
        "mmap" | "mmap2" => 4,
        "sendfile" | "sendfile64" => 1,
        "read" | "write" | "pread64" | "pwrite64" | "readv" | "writev" | "preadv" | "pwritev"
        | "preadv2" | "pwritev2" | "fstat" | "lseek" | "ioctl" | "fcntl" | "fcntl64" | "fsync"
        | "fdatasync" | "syncfs" | "sync_file_range" | "ftruncate" | "ftruncate64"
        | "fallocate" | "fadvise64" | "readahead" | "cachestat" | "flock" | "getdents"
        | "getdents64" | "fchmod" | "fchown" | "fchdir" | "fstatfs" | "fstatfs64" | "dup"
        | "dup2" | "dup3" | "connect" | "accept" | "accept4" | "bind" | "listen" | "shutdown"
        | "getsockname" | "getpeername" | "getsockopt" | "setsockopt" | "sendto" | "recvfrom"
        | "sendmsg" | "recvmsg" | "sendmmsg" | "recvmmsg" | "splice" | "tee" | "vmsplice"
        | "copy_file_range" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "epoll_ctl"
        | "timerfd_settime" | "timerfd_gettime" | "inotify_rm_watch" | "fgetxattr"
        | "fsetxattr" | "flistxattr" | "fremovexattr" | "io_uring_enter" | "io_uring_register"
        | "send" | "recv" => 0,
        _ => return None,
    };
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::{Abi, name, paths, polls, transfer};

    #[test]
    fn what_is_said_of_an_argument_is_of_one_the_call_has() {
        let mut known = 0;
        for call in (0..512).map(|number| name(Abi::X86_64, number)) {
            let Some(count) = arity(&call) else { continue };
            known += 1;
            let of_transfer = transfer(&call).map(|how| [how.from, how.to]).unwrap_or_default();
            let of_paths = paths(&call).iter().flat_map(|path| [Some(path.text), path.directory]);
            let named = of_transfer.into_iter().chain(of_paths);
            for at in named.chain([polls(&call), descriptor(&call)]).flatten() {
                assert!(at < count, "{call}: argument {at} of {count}");
            }
        }
        assert!(known > 250, "{known}");
        assert_eq!((arity("read"), arity("mmap"), arity("getpid")), (Some(3), Some(6), Some(0)));
        assert_eq!((arity("no_such_call"), descriptor("getpid")), (None, None));
    }
}
