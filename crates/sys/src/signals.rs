//! How this process handles signals that would end it.
//!
//! The one rule: a signal that this process was told to ignore when it was started, as by `nohup`, ends
//! nothing. SIGINT and SIGQUIT are told apart by where they come from: a shell without job control has its
//! background commands ignore the terminal's keys, and who sends one of these two by kill(1) means it.
//! Commands that are started get them as this process did.

use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The signals with which users and supervisors end a program.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Those of them that are keys of a terminal, too.
const KEYS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// The keys that this process was told to ignore, and heeds since where they are sent.
static HEEDED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Has SIGINT and SIGQUIT end this process where they are sent, also if it was told to ignore them.
pub fn heed_sent_keys() {
    for (signal, heeded) in KEYS.into_iter().zip(&HEEDED) {
        if is_ignored(signal) {
            heeded.store(true, Ordering::Relaxed);
            set_heeding(signal);
        }
    }
}

fn is_heeded(signal: libc::c_int) -> bool {
    KEYS.into_iter()
        .zip(&HEEDED)
        .any(|(key, heeded)| key == signal && heeded.load(Ordering::Relaxed))
}

fn set_heeding(signal: libc::c_int) {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = heed as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
    // SAFETY: the handler may run at any time; the old action is not asked for.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

extern "C" fn heed(signal: libc::c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: the kernel passes a handler of three arguments what it knows of the signal.
    if is_let_pass(signal, unsafe { (*info).si_code }) {
        return;
    }
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: it may be called in a handler, and the signal waits until this returns.
    unsafe { libc::raise(signal) };
}

/// Whether a signal with this `si_code` is one that this process was told to ignore.
pub fn is_let_pass(signal: libc::c_int, si_code: libc::c_int) -> bool {
    // The kernel's own, as a terminal's driver sends them.
    const SI_KERNEL: libc::c_int = 0x80;
    match KEYS.contains(&signal) {
        true => si_code == SI_KERNEL && (is_heeded(signal) || is_ignored(signal)),
        false => is_ignored(signal),
    }
}

/// The keys that a command which is started is to ignore, as this process was told to.
pub(crate) fn heeded_keys() -> impl Iterator<Item = libc::c_int> {
    KEYS.into_iter().filter(|key| is_heeded(*key))
}

/// Has a command of the standard library begin with the keys ignored that this process was told to ignore.
pub fn ignore_keys_as_given(command: &mut std::process::Command) {
    if heeded_keys().next().is_none() {
        return;
    }
    let ignore = || {
        for key in heeded_keys() {
            // SAFETY: sets a disposition that needs no handler.
            unsafe { libc::signal(key, libc::SIG_IGN) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec it sets dispositions alone, which allocates nothing.
    unsafe { command.pre_exec(ignore) };
}

/// The last signal that came while they were remembered, 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(signal: libc::c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: the kernel passes a handler of three arguments what it knows of the signal.
    if !is_let_pass(signal, unsafe { (*info).si_code }) {
        CAME.store(signal, Ordering::Relaxed);
    }
}

/// Signals that end a program, recorded instead for as long as this value lives. What is let pass is
/// not recorded, and an executed program gets the default action of the others.
#[derive(Debug)]
pub struct Remembered(());

impl Remembered {
    /// From now on.
    pub fn begin() -> Self {
        CAME.store(0, Ordering::Relaxed);
        // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = remember as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
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
            match is_heeded(signal) {
                true => set_heeding(signal),
                // SAFETY: sets a disposition that needs no handler.
                false => unsafe {
                    libc::signal(signal, libc::SIG_DFL);
                },
            }
        }
    }
}

/// Whether a signal is ignored now.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
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
