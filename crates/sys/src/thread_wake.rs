//! The signals of a process one of whose threads sleeps in `waitpid(2)` for its tracees.
//!
//! Other threads must be able to wake that thread, which only a signal with a handler does; it is
//! SIGURG, which nobody misses as nobody gets it unrequested. SIGCHLD keeps its default, to be
//! ignored: a handler or a `signalfd` for it would cost a thread's wake-up for every stop of a
//! tracee, on another CPU, whereas a sleeper in `waitpid` gets the CPU from the tracee that stops.
//!
//! The one invariant: a wake-up can come too early, before the thread sleeps, and is lost then. So
//! the waker sets a flag first, and wakes until the thread has shown that it has seen it.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::startup;

const WAKE: libc::c_int = libc::SIGURG;

static IN_USE: Mutex<()> = Mutex::new(());

/// The signals set up, for as long as this lives.
///
/// There is one for the whole process: a second waits until the first is dropped.
pub struct ThreadWake {
    previous_wake: libc::sigaction,
    _only: MutexGuard<'static, ()>,
}

impl ThreadWake {
    /// Sets the signals up.
    ///
    /// # Errors
    /// None that `sigaction(2)` documents for these arguments.
    pub fn set_up() -> io::Result<Self> {
        let only = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        // Without SA_RESTART: the call is to be interrupted.
        let previous_wake = set_action(WAKE, nothing as *const () as libc::sighandler_t)?;
        startup::reset_sigchld();
        Ok(Self { previous_wake, _only: only })
    }

    /// Makes the calling thread one that can be woken, and returns its id.
    pub fn enter(&self) -> u32 {
        for signal in [WAKE, libc::SIGCHLD] {
            unblock(signal);
        }
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::gettid() }.unsigned_abs()
    }

    /// Interrupts the call thread `tid` of this process sleeps in, if it does.
    pub fn wake(&self, tid: u32) {
        let pid = std::process::id().cast_signed();
        // SAFETY: plain integers; the handler does nothing, whichever thread this is by now.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, tid.cast_signed(), WAKE) };
    }
}

impl Drop for ThreadWake {
    fn drop(&mut self) {
        // SAFETY: `previous_wake` was written by the kernel; a null old action is not written.
        unsafe { libc::sigaction(WAKE, &raw const self.previous_wake, std::ptr::null_mut()) };
    }
}

extern "C" fn nothing(_signal: libc::c_int) {}

fn set_action(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<libc::sigaction> {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    let mut previous = action;
    // SAFETY: both point to valid structures; the handler, if it is one, does nothing.
    if unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(previous)
}

fn unblock(signal: libc::c_int) {
    // SAFETY: a zeroed `sigset_t` is a valid value of the type (plain integers).
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid and writable.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: as above, and the signal's number is valid.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: `set` is initialised; a null old set is not written.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}
