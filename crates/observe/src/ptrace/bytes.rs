//! The bytes that a call moved, where these are not what it returned: as in the kernel's programs (`bytes.bpf.h`).

use iotomy_sys::syscalls::Abi;

use super::procfs::bytes_at;

const MSG_PEEK: u64 = 0x2;
const MSG_TRUNC: u64 = 0x20;
const MSG_COPY: u64 = 0o40000;

/// The sizes of what messages are described by.
struct Layout {
    /// Of a word.
    word: usize,
    /// Between two headers of messages, and where in one the message's length is.
    stride: u64,
    length: u64,
    /// Where in a header the place of its parts is, and their number.
    parts: [u64; 2],
}

const WIDE: Layout = Layout { word: 8, stride: 64, length: 56, parts: [16, 24] };
const NARROW: Layout = Layout { word: 4, stride: 32, length: 28, parts: [8, 12] };

/// The bytes that a stopped task's call moved, which returned `value`.
pub(super) fn moved(tid: u32, (abi, name): (Abi, &str), args: &[u64; 6], value: u64) -> u64 {
    let layout = if abi == Abi::I386 { NARROW } else { WIDE };
    let peeks = |at: usize| args[at] & MSG_PEEK != 0;
    let is_cut = |at: usize| args[at] & MSG_TRUNC != 0;
    match name {
        "recvfrom" if peeks(3) => 0,
        "recvfrom" if is_cut(3) => value.min(args[2]),
        "recvmsg" if peeks(2) => 0,
        "recvmsg" if is_cut(2) => value.min(layout.room(tid, args[1])),
        "recvmmsg" | "recvmmsg_time64" if peeks(3) => 0,
        "recvmmsg" | "recvmmsg_time64" => layout.messages(tid, args[1], value, is_cut(3)),
        "sendmmsg" => layout.messages(tid, args[1], value, false),
        "getxattr" | "lgetxattr" | "fgetxattr" if args[3] == 0 => 0,
        "listxattr" | "llistxattr" | "flistxattr" if args[2] == 0 => 0,
        "msgrcv" if args[4] & MSG_COPY != 0 => 0,
        _ => value,
    }
}

impl Layout {
    /// The bytes of so many messages.
    fn messages(&self, tid: u32, at: u64, count: u64, is_cut: bool) -> u64 {
        let of_message = |nth: u64| {
            let header = at.wrapping_add(nth * self.stride);
            let bytes = number(tid, header.wrapping_add(self.length), 4);
            if is_cut { bytes.min(self.room(tid, header)) } else { bytes }
        };
        (0..count.min(1024)).map(of_message).fold(0, u64::saturating_add)
    }

    /// The room for a message, by its header.
    fn room(&self, tid: u32, header: u64) -> u64 {
        let [parts, count] = self.parts.map(|at| number(tid, header.wrapping_add(at), self.word));
        let word = self.word as u64;
        let of_part = |nth: u64| {
            number(tid, parts.wrapping_add(nth * 2 * word).wrapping_add(word), self.word)
        };
        (0..count.min(1024)).map(of_part).fold(0, u64::saturating_add)
    }
}

/// A number in the task's memory; 0 where there is none.
fn number(tid: u32, at: u64, length: usize) -> u64 {
    let mut wide = [0; 8];
    if let Some(bytes) = bytes_at(tid, at, length) {
        wide[..length].copy_from_slice(&bytes);
    }
    u64::from_ne_bytes(wide)
}
