//! Errors, in the words a user needs: the operation, its object, the kernel's error, and the
//! advice.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;

use iotomy_record::numbers::thousands;
use iotomy_sys::startup::was_closed;
use rustix::fs::{FileType, stat};
use rustix::io::Errno;

/// Why something was not copied, or not as requested. Each is a sentence of one line.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// These ends, or these options for them, do not allow it; nothing was changed.
    #[error("{0}")]
    Unsuited(String),
    /// Every mover of the plan was refused by the kernel before the source's first byte had moved.
    #[error("{0}")]
    Refused(String),
    /// A call failed.
    #[error("cannot {attempt}: {}{rest}", message(error))]
    Failed {
        /// The operation and its object.
        attempt: String,
        /// The kernel's error.
        error: io::Error,
        /// What came of it, and advice, with their separators; may be empty.
        rest: String,
    },
    /// What was read back is not what the source has.
    #[error("{0}")]
    Differs(String),
}

pub(crate) type Result<T, E = CopyError> = std::result::Result<T, E>;

/// As [`CopyError::Unsuited`].
pub(crate) fn unsuited<T>(text: impl Into<String>) -> Result<T> {
    Err(CopyError::Unsuited(text.into()))
}

impl CopyError {
    pub(crate) fn failed(attempt: String, error: impl Into<io::Error>) -> Self {
        Self::Failed { attempt, error: error.into(), rest: String::new() }
    }

    /// The same error with what came of it, or advice.
    pub(crate) fn with(self, more: &str) -> Self {
        match self {
            Self::Failed { attempt, error, rest } => {
                Self::Failed { attempt, error, rest: rest + more }
            }
            other => other,
        }
    }
}

/// The kernel's error without its number, which adds nothing.
pub(crate) fn message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Checks that a standard stream was open when iotomy started: a closed one was replaced by the
/// null device, which would swallow the copy.
///
/// # Errors
/// As read(2) and write(2) of a closed one.
pub(crate) fn open_at_start(stream: BorrowedFd<'_>) -> io::Result<()> {
    if was_closed(stream) { Err(Errno::BADF.into()) } else { Ok(()) }
}

/// The error for a source that could not be opened or examined.
pub(crate) fn unreadable(name: &str, error: impl Into<io::Error>) -> CopyError {
    let error = error.into();
    let hint = match error.kind() {
        ErrorKind::NotFound => "; check the name",
        ErrorKind::PermissionDenied => "; see `ls -l` for who may read it",
        ErrorKind::NotADirectory => "; a component of its path is not a directory",
        _ => match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => nobody_there(name),
            Some(Errno::BADF) => IS_CLOSED,
            _ => "",
        },
    };
    CopyError::failed(format!("read {name}"), error).with(hint)
}

/// The error for a source that is a directory.
pub(crate) fn is_folder<T>(name: &str) -> Result<T> {
    unsuited(format!("cannot copy {name}: it is a directory; name the files in it"))
}

/// The remark for a standard stream that is closed.
const IS_CLOSED: &str = "; it was closed when iotomy was started";

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
pub(crate) fn unwritable(name: &str, error: impl Into<io::Error>) -> CopyError {
    let error = error.into();
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
        _ => match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => nobody_there(name),
            Some(Errno::BADF) => IS_CLOSED,
            Some(Errno::TXTBSY) => "; it is a running program: use --atomic to replace it",
            _ => "",
        },
    };
    CopyError::failed(format!("write {name}"), error).with(hint)
}

/// The error of an end whose close fails, after `bytes`; `state` describes the target.
pub(crate) fn unclosed(name: &str, error: io::Error, bytes: u64, state: &str) -> CopyError {
    let rest = format!(" after {} bytes; {state}", number(bytes));
    CopyError::failed(format!("close {name}"), error).with(&rest)
}

/// A directory whose names may not be on the disk.
pub(crate) fn unsynced_folder(name: &str, error: io::Error) -> CopyError {
    let number = error.raw_os_error().map(|number| format!(" (os error {number})"));
    let attempt = format!("sync the directory {name}");
    CopyError::failed(attempt, error).with(&number.unwrap_or_default())
}

/// The advice where there was no room for all bytes.
pub(crate) fn more_room(error: &io::Error, may_be_atomic: bool) -> &'static str {
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
pub(crate) fn number(bytes: u64) -> String {
    thousands(bytes.into())
}
