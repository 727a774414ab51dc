//! System calls by ABI and number, and the facts about each that observers need.

mod arguments;
mod paths;
mod tables;

pub use arguments::{arity, descriptor};
pub use paths::{PathArgument, paths};

/// The table a call's number belongs to. A 64-bit program can make 32-bit calls (`int 0x80`), so
/// the ABI is a property of the call, not of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Abi {
    /// The native 64-bit entry.
    X86_64,
    /// The 32-bit entry.
    I386,
}

/// The name of call `number`, as man 2 spells it. A number past the table is named `syscall_N`.
pub fn name(abi: Abi, number: u32) -> String {
    let table: &[&str] = table(abi);
    match table.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("syscall_{number}"),
    }
}

/// The number of the call `name` in `abi`, where it has one.
pub fn number(abi: Abi, name: &str) -> Option<u32> {
    if let Some(number) = name.strip_prefix("syscall_") {
        return number.parse().ok();
    }
    let at = table(abi).iter().position(|known| *known == name && !known.is_empty())?;
    u32::try_from(at).ok()
}

fn table(abi: Abi) -> &'static [&'static str] {
    match abi {
        Abi::X86_64 => &tables::X86_64,
        Abi::I386 => &tables::I386,
    }
}

/// Which arguments of a byte-moving call name the descriptors the bytes come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfer {
    /// The argument (0-based) that is the descriptor read from.
    pub from: Option<u8>,
    /// The argument (0-based) that is the descriptor written to.
    pub to: Option<u8>,
}

/// Where call `name` moves bytes from and to, when it moves some through descriptors.
pub fn transfer(name: &str) -> Option<Transfer> {
    let (from, to) = match name {
        "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" | "recv"
        | "recvmmsg" | "recvmmsg_time64" => (Some(0), None),
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg"
        | "send" | "sendmmsg" | "vmsplice" => (None, Some(0)),
        "sendfile" | "sendfile64" => (Some(1), Some(0)),
        "splice" | "copy_file_range" => (Some(0), Some(2)),
        "tee" => (Some(0), Some(1)),
        _ => return None,
    };
    Some(Transfer { from, to })
}

/// The argument of call `name` that holds the number of polled descriptors.
pub fn polls(name: &str) -> Option<u8> {
    match name {
        "poll" | "ppoll" => Some(1),
        "select" | "pselect6" => Some(0),
        _ => None,
    }
}

/// Whether a non-negative return of call `name` is a count of descriptors, or of their events, that
/// are ready.
pub fn returns_ready(name: &str) -> bool {
    polls(name).is_some() || matches!(name, "epoll_wait" | "epoll_pwait" | "epoll_pwait2")
}

/// Whether call `name` moves bytes that are counted: those that it returns, but for `sendmmsg` and `recvmmsg`, which
/// return messages.
pub fn returns_bytes(name: &str) -> bool {
    transfer(name).is_some()
        || matches!(
            name,
            "getdents"
                | "getdents64"
                | "getrandom"
                | "readlink"
                | "readlinkat"
                | "getxattr"
                | "lgetxattr"
                | "fgetxattr"
                | "listxattr"
                | "llistxattr"
                | "flistxattr"
                | "process_vm_readv"
                | "process_vm_writev"
                | "mq_timedreceive"
                | "msgrcv"
                | "getxattrat"
                | "listxattrat"
        )
}

/// Whether call `name` never returns to its caller.
pub fn never_returns(name: &str) -> bool {
    matches!(name, "exit" | "exit_group")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_the_calls_of_their_own_abi() {
        assert_eq!(name(Abi::X86_64, 0), "read");
        assert_eq!(name(Abi::X86_64, 20), "writev");
        assert_eq!(name(Abi::I386, 20), "getpid");
        assert_eq!(name(Abi::X86_64, 451), "cachestat");
        assert_eq!(name(Abi::X86_64, 400), "syscall_400");
        assert_eq!(name(Abi::X86_64, u32::MAX), "syscall_4294967295");
    }

    #[test]
    fn every_number_comes_back_from_its_name() {
        for abi in [Abi::X86_64, Abi::I386] {
            for n in 0..480 {
                assert_eq!(number(abi, &name(abi, n)), Some(n), "{abi:?} {n}");
            }
        }
        assert_eq!(number(Abi::X86_64, ""), None);
    }
}
