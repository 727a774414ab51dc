//! Groups of system calls, by name: `%file`, `%net`, `%memory`…

/// A named group of calls.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The name, with its `%`.
    pub name: &'static str,
    /// The common trait of its calls.
    pub summary: &'static str,
    /// The calls.
    pub calls: &'static [&'static str],
}

/// What stands before the name of an operation of io_uring, to tell it from a call.
pub const RING_PREFIX: &str = "ring:";

/// The group of all operations of io_uring, which are no calls.
pub const ALL_RINGS: &str = "%ring";

/// Every group of calls.
#[rustfmt::skip]
pub static GROUPS: &[Group] = &[
    Group { name: "%io", summary: "calls that move bytes between descriptors and memory, or between descriptors", calls: &[
        "read", "pread64", "readv", "preadv", "preadv2", "write", "pwrite64", "writev", "pwritev", "pwritev2",
        "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "recv", "send", "sendfile", "sendfile64",
        "splice", "tee", "vmsplice", "copy_file_range", "io_uring_enter", "io_submit", "io_getevents",
    ] },
    Group { name: "%file", summary: "calls that take a path", calls: &[
        "open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "fstatat64", "stat64", "lstat64", "statx",
        "statfs", "statfs64", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "rename", "renameat",
        "renameat2", "unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat", "mkdir", "mkdirat", "rmdir",
        "mknod", "mknodat", "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "chdir", "chroot",
        "truncate", "truncate64", "utime", "utimes", "utimensat", "futimesat", "execve", "execveat", "getcwd",
        "getxattr", "lgetxattr", "setxattr", "lsetxattr", "listxattr", "llistxattr", "removexattr", "lremovexattr",
        "setxattrat", "getxattrat", "listxattrat", "removexattrat", "mount", "umount2", "pivot_root", "swapon",
        "swapoff", "acct", "quotactl", "inotify_add_watch", "fanotify_mark", "name_to_handle_at", "open_tree",
        "move_mount", "fspick", "file_getattr", "file_setattr",
    ] },
    Group { name: "%desc", summary: "calls that take or return a descriptor, without moving bytes \
        or waiting", calls: &[
        "close", "close_range", "dup", "dup2", "dup3", "fcntl", "fcntl64", "ioctl", "lseek", "_llseek", "fstat", "fstat64",
        "fstatfs", "fstatfs64", "fsync", "fdatasync", "sync_file_range", "syncfs", "ftruncate", "ftruncate64", "fallocate",
        "fadvise64", "readahead", "cachestat", "flock", "getdents", "getdents64", "fchmod", "fchown", "fchdir", "pipe",
        "pipe2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime",
        "memfd_create", "inotify_init", "inotify_init1", "pidfd_open", "pidfd_getfd", "fgetxattr", "fsetxattr",
        "flistxattr", "fremovexattr", "io_uring_setup", "io_uring_register", "epoll_create", "epoll_create1",
    ] },
    Group { name: "%net", summary: "calls on sockets", calls: &[
        "socket", "socketpair", "bind", "listen", "accept", "accept4", "connect", "shutdown", "getsockname", "getpeername",
        "getsockopt", "setsockopt", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "send", "recv",
        "socketcall", "sendfile", "sendfile64",
    ] },
    Group { name: "%memory", summary: "calls on the address space", calls: &[
        "brk", "mmap", "mmap2", "munmap", "mprotect", "mremap", "madvise", "process_madvise", "mincore", "msync", "mlock",
        "mlock2", "munlock", "mlockall", "munlockall", "remap_file_pages", "mbind", "set_mempolicy", "get_mempolicy",
        "set_mempolicy_home_node", "move_pages", "migrate_pages", "pkey_mprotect", "pkey_alloc", "pkey_free",
        "map_shadow_stack", "mseal", "userfaultfd",
    ] },
    Group { name: "%poll", summary: "calls that wait for descriptors", calls: &[
        "poll", "ppoll", "select", "pselect6", "_newselect", "epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl",
        "epoll_ctl_old", "epoll_wait_old", "epoll_create", "epoll_create1", "io_uring_enter", "io_getevents",
        "io_pgetevents",
    ] },
    Group { name: "%process", summary: "calls that create, change, end or wait for processes and \
        threads", calls: &[
        "fork", "vfork", "clone", "clone3", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "waitpid",
        "kill", "tkill", "tgkill", "pidfd_send_signal", "pidfd_open", "ptrace", "prctl", "arch_prctl", "unshare", "setns",
    ] },
    Group { name: "%signal", summary: "calls on signals", calls: &[
        "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
        "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack", "kill", "tkill", "tgkill", "pause", "signalfd", "signalfd4",
        "sigaction", "sigprocmask", "sigreturn", "sigsuspend", "signal", "alarm", "setitimer", "getitimer",
    ] },
    Group { name: "%sync", summary: "calls that make threads wait for each other or for a time", calls: &[
        "futex", "futex_waitv", "futex_wait", "futex_wake", "futex_requeue", "nanosleep", "clock_nanosleep", "sched_yield",
        "semop", "semtimedop", "msgrcv", "msgsnd", "mq_timedsend", "mq_timedreceive",
    ] },
];

/// Calls that wait for work or for another thread: in a program with a loop of events or a pool of threads these take
/// longest, and say least.
const IDLE_WAITS: [&str; 21] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "pselect6_time64",
    "ppoll_time64",
    "_newselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait_old",
    "futex",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "io_getevents",
    "io_pgetevents",
    "io_pgetevents_time64",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "pause",
];

/// Whether a call is a wait for work.
pub fn is_idle_wait(name: &str) -> bool {
    IDLE_WAITS.contains(&name)
}

/// The calls of the group `name` (with its `%`).
pub fn group(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name == name)
}
