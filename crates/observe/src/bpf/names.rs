//! Names for numbers of the programs: of calls, program images and files.

use iotomy_record::FileKind;
use iotomy_record::calls::RING_PREFIX;
use iotomy_sys::syscalls::Abi;

use super::books::Books;
use super::layout::{CALL_I386, CALL_NUMBER, FileName, SOCKFS};
use crate::naming::call_name;
use crate::ring_names;

pub(super) fn exec(books: &Books, image: u32) -> String {
    books.program(image).map_or_else(|| String::from("?"), |program| program.exec.clone())
}

pub(super) fn name(call: u16) -> String {
    call_name(abi(call), u32::from(call & CALL_NUMBER))
}

/// The operation of io_uring that stands in place of a call (`CALL_RING` of `where.h`), if one does.
pub(super) fn ring_operation(call: u32) -> Option<String> {
    const CALL_RING: u32 = 0x10000;
    (call & CALL_RING != 0).then(|| ring_names::name(call & 0xff))
}

/// The name of a call, or of such an operation.
pub(super) fn call_or_ring(call: u32) -> String {
    let of_call = || call_name(abi(call as u16), call & u32::from(CALL_NUMBER));
    ring_operation(call).map_or_else(of_call, |operation| format!("{RING_PREFIX}{operation}"))
}

pub(super) fn abi(call: u16) -> Abi {
    if call & CALL_I386 == 0 { Abi::X86_64 } else { Abi::I386 }
}

const ANON_INODE_FS: u64 = 0x0904_1934;
const PIPEFS: u64 = 0x5049_5045;

pub(super) fn kind(name: &FileName) -> FileKind {
    match (name.mode & 0o170_000, name.magic) {
        (_, ANON_INODE_FS) if name.components.first().is_some_and(|c| c == "[eventfd]") => {
            FileKind::Eventfd
        }
        (_, ANON_INODE_FS) => FileKind::Anon,
        (0o100_000, _) => FileKind::File,
        (0o040_000, _) => FileKind::Directory,
        (0o010_000, _) => FileKind::Pipe,
        (0o140_000, _) => FileKind::Socket,
        (0o020_000, _) => FileKind::Char,
        (0o060_000, _) => FileKind::Block,
        _ => FileKind::Other,
    }
}

pub(super) fn path(name: &FileName, inode: u64) -> String {
    let leaf = name.components.first().map_or("", String::as_str);
    match name.magic {
        ANON_INODE_FS => return format!("anon_inode:{leaf}"),
        SOCKFS => return format!("socket:[{inode}]"),
        PIPEFS => return format!("pipe:[{inode}]"),
        _ => {}
    }
    let mut path = String::from(if name.whole { "" } else { "…" });
    for component in name.components.iter().rev().filter(|c| *c != "/") {
        path.push('/');
        path.push_str(component);
    }
    if path.is_empty() { String::from("/") } else { path }
}
