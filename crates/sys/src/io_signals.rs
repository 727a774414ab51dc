//! Signals that report on descriptors: requested by `fcntl(F_SETSIG)`, received by
//! `rt_sigtimedwait(2)`.
//!
//! The one invariant: while a [`Signals`] lives, its thread has the two signals blocked and owns
//! them. They have a handler that does nothing, permanently, because their default action ends the
//! process: a late signal, when nobody waits for it any more, does no harm.

use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

const F_SETSIG: libc::c_int = 10;
const F_GETSIG: libc::c_int = 11;
const F_SETOWN_EX: libc::c_int = 15;
const F_GETOWN_EX: libc::c_int = 16;
const F_OWNER_TID: libc::c_int = 0;

/// `struct f_owner_ex`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner {
    kind: libc::c_int,
    pid: libc::pid_t,
}

/// `siginfo_t` with the fields of a signal that a descriptor sent.
#[repr(C, align(8))]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    pad: i32,
    band: i64,
    fd: i32,
    rest: [u8; 100],
}

/// The content of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalReport {
    /// Something happened to this descriptor: the bits of poll(2).
    Of {
        /// Its number when the signal was requested.
        fd: RawFd,
        /// The events.
        bits: u32,
    },
    /// There was no room to queue a signal: the descriptor is unknown.
    Overflow,
}

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// The two signals, held by a thread.
#[derive(Debug)]
pub struct Signals {
    /// The kernel's set of both.
    set: u64,
    /// The signals among them that were blocked before.
    before: u64,
    thread: libc::pid_t,
    /// It is about one thread, and stays there.
    _here: std::marker::PhantomData<*const ()>,
}

/// The real-time signal: any would do.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

extern "C" fn do_nothing(_: libc::c_int) {}

impl Signals {
    /// Blocks them in this thread.
    ///
    /// # Errors
    /// `EBUSY` where this thread holds them already; as sigaction(2).
    pub fn hold() -> io::Result<Self> {
        if HELD.get() {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let both = [libc::SIGIO, signal()];
        for signal in both {
            ignore(signal)?;
        }
        let set = both.iter().fold(0, |set, signal| set | 1 << (signal - 1));
        let before = change_mask(libc::SIG_BLOCK, set)? & set;
        // SAFETY: takes no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        HELD.set(true);
        Ok(Self { set, before, thread, _here: std::marker::PhantomData })
    }

    /// Makes the descriptor report every event to this thread. This changes its open file
    /// description, which others may share.
    ///
    /// # Errors
    /// The failed operation and the error; `EOPNOTSUPP` where the descriptor's kind never reports,
    /// which the kernel ignores.
    pub fn ask(&self, fd: RawFd) -> Result<(), (&'static str, io::Error)> {
        let owner = Owner { kind: F_OWNER_TID, pid: self.thread };
        // SAFETY: the kernel reads one `f_owner_ex`.
        let owned = unsafe { libc::fcntl(fd, F_SETOWN_EX, &raw const owner) };
        answer(owned).map_err(|e| ("fcntl F_SETOWN_EX", e))?;
        number(fd, F_SETSIG, signal()).map_err(|e| ("fcntl F_SETSIG", e))?;
        let flags = number(fd, libc::F_GETFL, 0).map_err(|e| ("fcntl F_GETFL", e))?;
        number(fd, libc::F_SETFL, flags | libc::O_ASYNC).map_err(|e| ("fcntl O_ASYNC", e))?;
        match number(fd, libc::F_GETFL, 0) {
            Ok(flags) if flags & libc::O_ASYNC != 0 => Ok(()),
            Ok(_) => Err(("fcntl O_ASYNC", io::Error::from_raw_os_error(libc::EOPNOTSUPP))),
            Err(error) => Err(("fcntl F_GETFL", error)),
        }
    }

    /// Stops its reports. Queued signals stay queued.
    pub fn leave(&self, fd: RawFd) {
        // A descriptor that is gone has nothing to be changed.
        let Ok(flags) = number(fd, libc::F_GETFL, 0) else { return };
        let _ = number(fd, libc::F_SETFL, flags & !libc::O_ASYNC);
        let _ = number(fd, F_SETSIG, 0);
        let _ = number(fd, libc::F_SETOWN, 0);
    }

    /// Whether the descriptor reports to this thread, and is not another one with the same number.
    pub fn is_asked(&self, fd: RawFd) -> bool {
        let mut owner = Owner { kind: -1, pid: 0 };
        // SAFETY: `owner` is room for the one structure that is written.
        let known = unsafe { libc::fcntl(fd, F_GETOWN_EX, &raw mut owner) } != -1;
        known
            && owner == Owner { kind: F_OWNER_TID, pid: self.thread }
            && number(fd, F_GETSIG, 0).is_ok_and(|asked| asked == signal())
    }

    /// Receives a signal from the queue; waits this long, or for ever. `None` when there was none.
    ///
    /// # Errors
    /// As rt_sigtimedwait(2), `EINTR` with the rest.
    pub fn take(&self, timeout: Option<Duration>) -> io::Result<Option<SignalReport>> {
        let time;
        let timeout = match timeout {
            None => std::ptr::null(),
            Some(timeout) => {
                // Times above 68 years are equal.
                let tv_sec = timeout.as_secs().min(i32::MAX.unsigned_abs().into()).cast_signed();
                time = libc::timespec { tv_sec, tv_nsec: timeout.subsec_nanos().into() };
                &raw const time
            }
        };
        // SAFETY: a zeroed `Info` is a valid value of the type (plain integers).
        let mut info: Info = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel reads a set of 8 bytes and a time-out, which is null or outlives the
        // call, and writes one `siginfo_t`, which `info` has the size of.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const self.set,
                &raw mut info,
                timeout,
                size_of::<u64>(),
            )
        };
        if taken < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::EAGAIN) { Ok(None) } else { Err(error) };
        }
        if info.signal == signal() {
            let bits = u32::try_from(info.band).unwrap_or(0);
            return Ok(Some(SignalReport::Of { fd: info.fd, bits }));
        }
        Ok(Some(SignalReport::Overflow))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while matches!(self.take(Some(Duration::ZERO)), Ok(Some(_))) {}
        let _ = change_mask(libc::SIG_UNBLOCK, self.set & !self.before);
        HELD.set(false);
    }
}

/// Gives the signal a handler that does nothing, unless it has another one.
fn ignore(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only reads; `action` outlives the call.
    answer(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) })?;
    if action.sa_sigaction != libc::SIG_DFL {
        return Ok(());
    }
    action.sa_sigaction = do_nothing as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler touches nothing; the old action is not asked for.
    answer(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }).map(drop)
}

/// Changes the blocked signals of this thread; returns those blocked before, of the first 64.
fn change_mask(how: libc::c_int, set: u64) -> io::Result<u64> {
    let mut before = 0_u64;
    // SAFETY: the kernel reads one set of 8 bytes and writes another. None of the signals is one the
    // C library keeps for itself.
    let done = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const set,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(before) }
}

/// `fcntl(2)` with a number.
fn number(fd: RawFd, operation: libc::c_int, value: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: these operations take a number, and touch no memory of ours.
    answer(unsafe { libc::fcntl(fd, operation, value) })
}

fn answer(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const LOOK: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn a_descriptor_tells_the_thread_that_asked_it() {
        assert_eq!(size_of::<Info>(), size_of::<libc::siginfo_t>());
        let signals = Signals::hold().unwrap();
        assert_eq!(Signals::hold().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        let (out, mut into) = io::pipe().unwrap();
        let fd = out.as_raw_fd();
        signals.ask(fd).unwrap();
        assert!(signals.is_asked(fd) && !signals.is_asked(into.as_raw_fd()));
        assert_eq!(signals.take(LOOK).unwrap(), None);
        into.write_all(b"a").unwrap();
        let Some(SignalReport::Of { fd: told, bits }) = signals.take(None).unwrap() else {
            panic!()
        };
        assert!(told == fd && bits & 1 == 1, "{bits:x}");
        signals.leave(fd);
        into.write_all(b"a").unwrap();
        assert_eq!(signals.take(LOOK).unwrap(), None);
        assert!(!signals.is_asked(fd));
    }

    #[test]
    fn a_descriptor_that_never_tells_is_refused() {
        let signals = Signals::hold().unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let (_, error) = signals.ask(file.as_raw_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
