//! Repeats calls until they have a result: at once when a signal interrupted them, and after a wait
//! when another process made the descriptor non-blocking, whose flag is not ours to clear.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

/// How often in a row a call may report that it would block although there is nothing to wait for.
/// A file that keeps reporting it has failed: poll(2) finds files ready at any time.
pub(crate) const IN_VAIN: u32 = 1000;

/// Makes `call` until it does something else than being interrupted; waits for `events` on `fd`
/// whenever it would block.
pub(crate) fn patiently<T>(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut in_vain = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if in_vain == IN_VAIN && never_blocks(fd) => {
                return Err(Errno::AGAIN);
            }
            Err(Errno::AGAIN) => {
                in_vain = IN_VAIN.min(in_vain + 1);
                wait_for(fd, events)?;
            }
            answer => return answer,
        }
    }
}

/// Whether it is a file, which poll(2) reports as ready at any time.
fn never_blocks(fd: BorrowedFd<'_>) -> bool {
    let kind = fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::BlockDevice))
}

/// Makes `call`, which never would block, until it does something else than being interrupted.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// As [`patiently`], for a call with two ends, which does not report which of them would block:
/// waits until the source has something, then until the target has room.
pub(crate) fn patiently_both<T>(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut in_vain = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            // For an end that can block it would have waited.
            Err(Errno::AGAIN)
                if in_vain == IN_VAIN && (never_blocks(source) || never_blocks(target)) =>
            {
                return Err(Errno::AGAIN);
            }
            Err(Errno::AGAIN) => {
                in_vain = IN_VAIN.min(in_vain + 1);
                wait_for(source, PollFlags::IN)?;
                wait_for(target, PollFlags::OUT)?;
            }
            answer => return answer,
        }
    }
}

/// Waits until one of `events` (or an error or a hang-up) is there.
pub(crate) fn wait_for(fd: BorrowedFd<'_>, events: PollFlags) -> Result<(), Errno> {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(fd, events)], None) {
            Err(Errno::INTR) => {}
            answer => return answer.map(drop),
        }
    }
}
