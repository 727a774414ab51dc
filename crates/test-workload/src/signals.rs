//! Signals: handled, interrupting, stopping, killing.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::raw;

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn handle(signal: i32) {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: `action` is valid; the handler only touches an atomic.
    let failed = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

fn send(pid: i32, signal: i32) {
    // SAFETY: plain integers.
    unsafe { libc::syscall(libc::SYS_kill, pid, signal) };
}

fn this_process() -> i32 {
    std::process::id().cast_signed()
}

pub(crate) fn handled(times: u64, signal: i32) {
    handle(signal);
    for _ in 0..times {
        send(this_process(), signal);
    }
    assert_eq!(HANDLED.load(Ordering::Relaxed), times);
}

pub(crate) fn interrupted() {
    let [reader, _writer] = raw::new_pipe();
    handle(libc::SIGALRM);
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let soon = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    let timer = libc::itimerval { it_interval: none, it_value: soon };
    // SAFETY: `timer` is readable; a null old value is not written.
    unsafe {
        libc::syscall(
            libc::SYS_setitimer,
            libc::ITIMER_REAL,
            &raw const timer,
            std::ptr::null_mut::<libc::itimerval>(),
        )
    };
    assert_eq!(raw::readv(reader, &mut 0), -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
}

pub(crate) fn stopped(calls: u64) {
    // SAFETY: the child only makes system calls and ends with `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        send(this_process(), libc::SIGSTOP);
        raw::getppid(calls);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) }
    }
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, libc::WUNTRACED) }, child);
    assert!(libc::WIFSTOPPED(status));
    send(child, libc::SIGCONT);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

pub(crate) fn die(signal: u64) {
    let signal = i32::try_from(signal).expect("a signal's number");
    // SAFETY: this disposition needs no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    send(this_process(), signal);
}
