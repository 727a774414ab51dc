//! The operations of io_uring: their names, and what they do with bytes.

/// What an operation does with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    /// Its result is no count of bytes.
    None,
    /// It reads them from its file.
    Read,
    /// It writes them to its file.
    Written,
    /// It moves them between two files.
    Moved,
}

use Bytes::{Moved, None as Nothing, Read, Written};

/// By number, named as in liburing.
const OPERATIONS: [(&str, Bytes); 63] = [
    ("nop", Nothing),
    ("readv", Read),
    ("writev", Written),
    ("fsync", Nothing),
    ("read_fixed", Read),
    ("write_fixed", Written),
    ("poll_add", Nothing),
    ("poll_remove", Nothing),
    ("sync_file_range", Nothing),
    ("sendmsg", Written),
    ("recvmsg", Read),
    ("timeout", Nothing),
    ("timeout_remove", Nothing),
    ("accept", Nothing),
    ("async_cancel", Nothing),
    ("link_timeout", Nothing),
    ("connect", Nothing),
    ("fallocate", Nothing),
    ("openat", Nothing),
    ("close", Nothing),
    ("files_update", Nothing),
    ("statx", Nothing),
    ("read", Read),
    ("write", Written),
    ("fadvise", Nothing),
    ("madvise", Nothing),
    ("send", Written),
    ("recv", Read),
    ("openat2", Nothing),
    ("epoll_ctl", Nothing),
    ("splice", Moved),
    ("provide_buffers", Nothing),
    ("remove_buffers", Nothing),
    ("tee", Moved),
    ("shutdown", Nothing),
    ("renameat", Nothing),
    ("unlinkat", Nothing),
    ("mkdirat", Nothing),
    ("symlinkat", Nothing),
    ("linkat", Nothing),
    ("msg_ring", Nothing),
    ("fsetxattr", Nothing),
    ("setxattr", Nothing),
    ("fgetxattr", Nothing),
    ("getxattr", Nothing),
    ("socket", Nothing),
    ("uring_cmd", Nothing),
    ("send_zc", Written),
    ("sendmsg_zc", Written),
    ("read_multishot", Read),
    ("waitid", Nothing),
    ("futex_wait", Nothing),
    ("futex_wake", Nothing),
    ("futex_waitv", Nothing),
    ("fixed_fd_install", Nothing),
    ("ftruncate", Nothing),
    ("bind", Nothing),
    ("listen", Nothing),
    ("recv_zc", Read),
    ("epoll_wait", Nothing),
    ("readv_fixed", Read),
    ("writev_fixed", Written),
    ("pipe", Nothing),
];

/// Of these, the operations that work on no descriptor: they have a path, an address, or another request.
const WITHOUT_DESCRIPTOR: [&str; 26] = [
    "nop",
    "timeout",
    "timeout_remove",
    "poll_remove",
    "async_cancel",
    "link_timeout",
    "openat",
    "openat2",
    "files_update",
    "statx",
    "madvise",
    "provide_buffers",
    "remove_buffers",
    "renameat",
    "unlinkat",
    "mkdirat",
    "symlinkat",
    "linkat",
    "setxattr",
    "getxattr",
    "socket",
    "waitid",
    "futex_wait",
    "futex_wake",
    "futex_waitv",
    "pipe",
];

/// Whether an operation works on a descriptor.
pub(crate) fn has_descriptor(name: &str) -> bool {
    !WITHOUT_DESCRIPTOR.contains(&name)
}

/// The operations of which the path is known that they are given (`note_given_path` of `ring_where.bpf.h`).
const WITH_PATH: [&str; 5] = ["openat", "openat2", "statx", "unlinkat", "mkdirat"];

/// Whether it is known which path an operation is given.
pub(crate) fn has_path(name: &str) -> bool {
    WITH_PATH.contains(&name)
}

/// The name of an operation.
pub(crate) fn name(op: u32) -> String {
    let known = OPERATIONS.get(op as usize);
    known.map_or_else(|| format!("op_{op}"), |(name, _)| (*name).to_owned())
}

/// The names of the operations that are known by one.
pub fn ring_operations() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().map(|(name, _)| *name)
}

/// Whether records may have an operation under this name.
pub fn is_ring_operation(text: &str) -> bool {
    (0..=u32::from(u8::MAX)).any(|op| name(op) == text)
}

/// In place of a call: io_uring's own threads are at no request.
pub(crate) const NO_REQUEST: &str = "ring:no request";

/// The name of an operation in place of a call; `None`: of one that is not known.
pub(crate) fn call(op: Option<u32>) -> String {
    op.map_or_else(|| "ring:unknown operation".to_owned(), |op| format!("ring:{}", name(op)))
}

/// Whether its result is a count of bytes.
pub(crate) fn returns_bytes(op: u32) -> bool {
    OPERATIONS.get(op as usize).is_some_and(|(_, bytes)| *bytes != Nothing)
}

/// The same by its name.
pub(crate) fn moves_bytes(name: &str) -> bool {
    OPERATIONS.iter().any(|(known, bytes)| *known == name && *bytes != Nothing)
}

/// As `ring_transfers` of `rings.bpf.h` has it: a byte an operation, which may be left out.
pub(crate) fn transfers(is_wanted: impl Fn(&str) -> bool) -> [u8; 256] {
    const LEFT_OUT: u8 = 8;
    std::array::from_fn(|op| match OPERATIONS.get(op).map_or(Nothing, |(_, bytes)| *bytes) {
        _ if !is_wanted(&name(op as u32)) => LEFT_OUT,
        Nothing => 0,
        Read => 1,
        Written => 2,
        Moved => 4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the `io_uring` crate, which are the kernel's.
    #[test]
    fn operations_have_their_numbers() {
        for (op, number) in [("nop", 0), ("read", 22), ("send_zc", 47), ("pipe", 62)] {
            assert_eq!(name(number), op);
        }
        assert_eq!(name(200), "op_200");
    }

    #[test]
    fn those_without_a_descriptor_are_operations() {
        assert!(WITHOUT_DESCRIPTOR.iter().all(|name| is_ring_operation(name)));
        assert!(WITH_PATH.iter().all(|name| is_ring_operation(name) && !has_descriptor(name)));
        assert!(has_descriptor("read") && has_descriptor("op_70") && !has_descriptor("openat"));
        assert!(moves_bytes("splice") && !moves_bytes("accept") && !moves_bytes("op_70"));
    }

    #[test]
    fn an_operation_has_one_name() {
        let all: Vec<&str> = ring_operations().collect();
        assert!(all.iter().all(|one| is_ring_operation(one) && !one.starts_with("op_")));
        assert!(is_ring_operation("op_63") && is_ring_operation("op_255"));
        assert!(!["op_62", "op_256", "reed", ""].into_iter().any(is_ring_operation));
    }
}
