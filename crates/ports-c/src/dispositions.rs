//! The functions that say what a program does with a signal: of signals that a queue watches, they say it
//! to the one handler that counts them. All others are the C library's.
//!
//! Not seen are `sigset`, `sigignore`, `siginterrupt`, and raw system calls: they end the count of a signal.

use std::ffi::c_int;
use std::mem::zeroed;

use iotomy_ports::Errno;
use iotomy_sys::signal_watch;

use crate::calls::fail;

/// `int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)`.
///
/// # Safety
/// As sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { signal_watch::set(signal, new, old) }
}

/// Sets a handler by its address, with flags; returns the one before.
fn set(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> libc::sighandler_t {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action: libc::sigaction = unsafe { zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    if flags & libc::SA_NODEFER == 0 {
        // SAFETY: the set is empty; what is no signal is refused below.
        unsafe { libc::sigaddset(&raw mut action.sa_mask, signal) };
    }
    let mut old = action;
    // SAFETY: both are actions.
    let is_set = handler != libc::SIG_ERR
        && unsafe { signal_watch::set(signal, &raw const action, &raw mut old) } == 0;
    if !is_set {
        fail(Errno::INVAL);
        return libc::SIG_ERR;
    }
    old.sa_sigaction
}

/// Defines functions that set a handler.
macro_rules! setters {
    ($($name:ident: $flags:expr;)*) => {$(
        /// As signal(2) of this name.
        ///
        /// # Safety
        /// As signal(2): the handler is a function, or one of the values.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            signal: c_int,
            handler: libc::sighandler_t,
        ) -> libc::sighandler_t {
            set(signal, handler, $flags)
        }
    )*};
}

setters! {
    signal: libc::SA_RESTART;
    bsd_signal: libc::SA_RESTART;
    sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
    __sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
}
