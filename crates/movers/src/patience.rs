//! Calls made until they have an answer: again when a signal interrupted them, and after a wait
//! when the descriptor was made non-blocking by somebody else, whose flag is not ours to clear.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Makes `call` until it does something else than being interrupted; waits for `events` on `fd`
/// whenever it would block.
pub(crate) fn patiently<T>(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(fd, events)?,
            answer => return answer,
        }
    }
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

/// As [`patiently`], for a call with two ends, which does not say which of them would block: waits
/// until the source has something, then until the target has room.
pub(crate) fn patiently_both<T>(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
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
