//! How this process handles signals that would end it.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The signals with which users and supervisors end a program.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The last signal that came while they were remembered, 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(signal: libc::c_int) {
    CAME.store(signal, Ordering::Relaxed);
}

/// Signals that end a program, recorded instead for as long as this value lives. Ignored signals
/// stay ignored, and an executed program gets their default action.
#[derive(Debug)]
pub struct Remembered(());

impl Remembered {
    /// From now on.
    pub fn begin() -> Self {
        CAME.store(0, Ordering::Relaxed);
        // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = remember as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: the handler only stores into an atomic; the old action is not asked for.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
        Self(())
    }

    /// Whether one has arrived.
    pub fn has_come() -> bool {
        CAME.load(Ordering::Relaxed) != 0
    }

    /// The one that came last, if any; no longer remembered.
    pub fn take(&self) -> Option<i32> {
        Some(CAME.swap(0, Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: sets a disposition that needs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only reads; `now` outlives the call.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) } != 0;
    !failed && now.sa_sigaction == libc::SIG_IGN
}

/// Makes a write past the limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`) fail with
/// `EFBIG`, which can be reported, instead of ending this process by `SIGXFSZ`. A command under
/// study does not inherit this.
pub fn ignore_file_size() {
    // SAFETY: no handler is set that could run. It cannot fail: the signal exists and can be ignored.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    if !IS_CHANGED.swap(true, Ordering::Relaxed) {
        WAS_IGNORED.store(before == libc::SIG_IGN, Ordering::Relaxed);
    }
}

static IS_CHANGED: AtomicBool = AtomicBool::new(false);
static WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether `SIGXFSZ` was ignored before [`ignore_file_size`], if that was called.
pub(crate) fn changed_file_size() -> Option<bool> {
    IS_CHANGED.load(Ordering::Relaxed).then(|| WAS_IGNORED.load(Ordering::Relaxed))
}

/// Restores the default action of signals that end a program, here and in the processes started
/// from here: a non-interactive shell makes its background processes ignore SIGINT and SIGQUIT.
pub fn be_ended_by_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: sets a disposition that needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
