//! The errors of a first call that mean a refusal of this call, and not a broken end.

use rustix::io::Errno;

use crate::{End, Kind, MoveError, Moved, MoverDeclaration, Outcome, Side};

/// Whether `errno`, with nothing moved yet, means that this call does not serve this pair here, so
/// that another mover may.
///
/// `EBADF` is the error of an appending target, `EPERM` that of a filter of system calls, `ETXTBSY`
/// and `EFBIG` those of `copy_file_range(2)` where plain writes report more, and `ECANCELED` that
/// of `io_uring(7)` where it may create no worker.
pub(crate) fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS
            | Errno::XDEV
            | Errno::INVAL
            | Errno::OPNOTSUPP
            | Errno::PERM
            | Errno::ACCESS
            | Errno::BADF
            | Errno::TXTBSY
            | Errno::FBIG
            | Errno::NOTTY
            | Errno::NODEV
            | Errno::SPIPE
            | Errno::NOMEM
            | Errno::ISDIR
            | Errno::OVERFLOW
            | Errno::CANCELED
    )
}

impl MoveError {
    /// Whether the kernel has refused, too late for another mover, a call that is not of the plainest.
    pub fn is_late_refusal(&self) -> bool {
        let errno = Errno::from_io_error(&self.source);
        !matches!(self.call, "read" | "write") && errno.is_some_and(is_refusal)
    }
}

/// The end of a run by `errno` of `call`: a refusal when nothing had moved and it may be one.
pub(crate) fn refused_or_failed(
    of: &MoverDeclaration,
    call: &'static str,
    side: Side,
    moved: Moved,
    errno: Errno,
) -> Result<Outcome, MoveError> {
    if moved.bytes == 0 && is_refusal(errno) {
        return Ok(Outcome::Refused { call, errno: Some(errno) });
    }
    Err(MoveError::new(of, call, side, moved, errno))
}

/// The reason for a refusal when `end` is not of one of `kinds`.
pub(crate) fn only(end: &End<'_>, as_what: &str, kinds: &[Kind]) -> Result<(), String> {
    if kinds.contains(&end.kind()) {
        return Ok(());
    }
    Err(format!("the {as_what} is a {}", end.kind().name()))
}

/// The reason for a refusal when an end has flags that calls inside the kernel refuse: some at
/// once, some only at a last block that is not a multiple of what `O_DIRECT` needs.
pub(crate) fn plain(source: &End<'_>, target: &End<'_>) -> Result<(), String> {
    if target.is_append() {
        return Err("the target is open for appending".to_owned());
    }
    for (end, role) in [(source, "source"), (target, "target")] {
        if end.is_direct() {
            return Err(format!("the {role} is open with O_DIRECT"));
        }
    }
    Ok(())
}

/// Whether a first answer of 0 bytes is not an end of file: the source's size is made up, or not yet
/// reached.
pub(crate) fn is_suspicious_end(source: &End<'_>) -> bool {
    if source.kind() != Kind::Regular {
        return false;
    }
    if !source.has_true_size() {
        return true;
    }
    let size = rustix::fs::fstat(source.fd()).map(|stat| stat.st_size);
    let position = rustix::fs::tell(source.fd());
    match (size, position) {
        (Ok(size), Ok(position)) => position < u64::try_from(size).unwrap_or(0),
        _ => false,
    }
}
