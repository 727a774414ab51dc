//! Errors, in the words a user needs: the operation, its object, the kernel's error, and the
//! advice.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::anyhow;
use iotomy_record::lossless;
use iotomy_report::thousands;
use iotomy_sys::startup::was_closed;
use rustix::fs::{FileType, stat};
use rustix::io::Errno;

/// A path in messages and records: each byte of it can be told.
pub(super) fn shown(path: &Path) -> String {
    lossless(path.as_os_str().as_bytes())
}

/// The kernel's error without its number, which adds nothing.
pub(super) fn message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// The kernel's answer to a mover that was refused.
pub(super) fn answer(errno: Option<Errno>) -> String {
    match errno {
        Some(errno) => message(&errno.into()),
        None => "moved nothing, without an error".to_owned(),
    }
}

/// Checks that a standard stream was open when iotomy started: a closed one was replaced by the
/// null device, which would swallow the copy.
///
/// # Errors
/// As read(2) and write(2) of a closed one.
pub(super) fn open_at_start(stream: BorrowedFd<'_>) -> io::Result<()> {
    if was_closed(stream) { Err(Errno::BADF.into()) } else { Ok(()) }
}

/// The error for a source that could not be opened or examined.
pub(super) fn unreadable(name: &str, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::NotFound => "; check the name",
        ErrorKind::PermissionDenied => "; see `ls -l` for who may read it",
        ErrorKind::NotADirectory => "; a component of its path is not a directory",
        _ if error.raw_os_error() == Some(ENXIO) => nobody_there(name),
        _ if error.raw_os_error() == Some(EBADF) => IS_CLOSED,
        _ => "",
    };
    anyhow!("cannot read {name}: {}{hint}", message(error))
}

/// The error for a source that is a directory.
pub(super) fn is_folder(name: &str) -> anyhow::Error {
    anyhow!("cannot copy {name}: it is a directory; name the files in it")
}

/// The remark for a standard stream that is closed.
const IS_CLOSED: &str = "; it was closed when iotomy was started";

/// `EBADF`: no descriptor.
const EBADF: i32 = 9;
/// `ENXIO`: no such device or address.
const ENXIO: i32 = 6;
/// `ETXTBSY`: a program that runs.
const ETXTBSY: i32 = 26;

/// The cause of `ENXIO` for this name, where it can be determined.
fn nobody_there(name: &str) -> &'static str {
    match stat(name).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Socket) => "; a socket cannot be opened by its name",
        Ok(FileType::CharacterDevice | FileType::BlockDevice) => {
            "; there is no such device; /dev/tty needs a terminal"
        }
        _ => "",
    }
}

/// A target that could not be opened or made.
pub(super) fn unwritable(name: &str, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::NotFound => "; create its directory first",
        ErrorKind::PermissionDenied if error.get_ref().is_some() => {
            "; name its target itself if that is intended"
        }
        ErrorKind::PermissionDenied => "; see `ls -ld` for who may write to it and its directory",
        ErrorKind::NotADirectory => "; a component of its path is not a directory",
        ErrorKind::IsADirectory => "; name a file in it",
        ErrorKind::ReadOnlyFilesystem => "; write somewhere else",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some space",
        _ => match error.raw_os_error() {
            Some(ENXIO) => nobody_there(name),
            Some(EBADF) => IS_CLOSED,
            Some(ETXTBSY) => "; it is a running program: use --atomic to replace it",
            _ => "",
        },
    };
    anyhow!("cannot write {name}: {}{hint}", message(error))
}

/// The error of an end whose close fails, after `bytes`; `state` describes the target.
pub(super) fn unclosed(name: &str, error: &io::Error, bytes: u64, state: &str) -> anyhow::Error {
    anyhow!("cannot close {name}: {} after {} bytes; {state}", message(error), number(bytes))
}

/// The advice where there was no room for all bytes.
pub(super) fn more_room(error: &io::Error, may_be_atomic: bool) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded if may_be_atomic => {
            "; free some space, or use --atomic to keep the old file whole"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space, or write somewhere else"
        }
        _ => "",
    }
}

/// A number of bytes with its thousands separated.
pub(super) fn number(bytes: u64) -> String {
    thousands(bytes.into())
}
