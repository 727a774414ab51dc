//! A child that does one thing to itself and ends.
//!
//! The tricky invariant: the child is a copy of one thread of a process that may have many, so it
//! must not wait for a lock another thread held at the fork. It makes system calls only, and
//! leaves by `_exit`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::Refusal;

/// A call that failed in the child: its place in the list of calls, and the error number.
pub(super) struct Failure {
    call: usize,
    errno: i32,
}

/// Checks a call's return value in the child: `call` is its place in the list given to
/// [`in_child`].
pub(super) fn check(call: usize, returned: i32) -> Result<(), Failure> {
    if returned >= 0 { Ok(()) } else { Err(Failure { call, errno: errno() }) }
}

/// Runs `work` in a child and returns which of `calls` failed there, if any.
///
/// # Safety
/// `work` makes async-signal-safe calls only: it does not allocate, lock, print or panic.
pub(super) unsafe fn in_child(
    calls: &[&'static str],
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Refusal> {
    let (read, write) = pipe()?;
    // SAFETY: the child runs `work`, for which the caller vouches, and then only write and _exit.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(Refusal::last("fork"));
    }
    if pid == 0 {
        let answer = match work() {
            Ok(()) => [0, 0],
            Err(failure) => [i32::try_from(failure.call).unwrap_or(0), failure.errno],
        };
        leave(write.as_raw_fd(), answer);
    }
    drop(write);
    let answer = read_answer(&read);
    let status = wait_for_end(pid);
    match answer {
        Some([_, 0]) => Ok(()),
        Some([call, errno]) => {
            let call = usize::try_from(call).ok().and_then(|at| calls.get(at).copied());
            Err(Refusal::new(call.unwrap_or("fork"), io::Error::from_raw_os_error(errno)))
        }
        None => {
            let text = format!("the child that tried it was ended by signal {}", status & 0x7f);
            Err(Refusal::new(calls.first().copied().unwrap_or("fork"), io::Error::other(text)))
        }
    }
}

/// Waits until the child `pid` is gone; its wait status, or 0 when it was reaped by the kernel
/// because SIGCHLD is ignored.
pub(super) fn wait_for_end(pid: libc::pid_t) -> i32 {
    loop {
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        let got = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if got < 0 && errno() == libc::EINTR {
            continue;
        }
        if got < 0 {
            return 0;
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            return status;
        }
    }
}

/// A pipe, closed on exec.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), Refusal> {
    let (read, write) = io::pipe().map_err(|error| Refusal::new("pipe2", error))?;
    Ok((read.into(), write.into()))
}

/// The C library's error number of this thread.
pub(super) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Ends this process at once, without the parent's exit handlers.
pub(super) fn exit_now() -> ! {
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(0) }
}

fn leave(to: RawFd, answer: [i32; 2]) -> ! {
    // SAFETY: `answer` is eight readable bytes; a pipe takes them in one piece.
    unsafe { libc::write(to, answer.as_ptr().cast(), size_of_val(&answer)) };
    exit_now()
}

fn read_answer(from: &OwnedFd) -> Option<[i32; 2]> {
    let mut answer = [0i32; 2];
    let size = size_of_val(&answer);
    loop {
        // SAFETY: `answer` is writable and `size` is its size.
        let got = unsafe { libc::read(from.as_raw_fd(), answer.as_mut_ptr().cast(), size) };
        if got < 0 && errno() == libc::EINTR {
            continue;
        }
        return (usize::try_from(got) == Ok(size)).then_some(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_comes_back_by_name_and_number() {
        let work = || Err(Failure { call: 1, errno: libc::EPERM });
        // SAFETY: the work makes no call at all.
        let refusal = unsafe { in_child(&["first", "second"], work) }.unwrap_err();
        assert_eq!((refusal.call, refusal.errno()), ("second", libc::EPERM));
    }

    #[test]
    fn a_child_that_is_killed_is_a_refusal() {
        let work = || {
            // SAFETY: takes a plain integer; the default action of SIGKILL cannot be changed.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        };
        // SAFETY: the work makes one async-signal-safe call.
        let refusal = unsafe { in_child(&["first"], work) }.unwrap_err();
        assert!(refusal.to_string().contains("signal 9"), "{refusal}");
    }
}
