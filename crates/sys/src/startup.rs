//! What the process was given before the language runtime, or iotomy itself, changed it.
//!
//! Rust's runtime sets SIGPIPE to ignored before `main`, and a watch cannot do with an ignored
//! SIGCHLD. A command that iotomy starts must get the dispositions iotomy itself was started with,
//! so they are read before the runtime runs.

use std::sync::atomic::{AtomicBool, Ordering};

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static SIGCHLD_IGNORED: AtomicBool = AtomicBool::new(false);
static SIGTTOU_IGNORED: AtomicBool = AtomicBool::new(false);

/// The signals whose dispositions are changed here, each with whether it was ignored when this
/// process was started.
pub fn changed_signals() -> [(libc::c_int, bool); 3] {
    [
        (libc::SIGPIPE, SIGPIPE_IGNORED.load(Ordering::Relaxed)),
        (libc::SIGCHLD, SIGCHLD_IGNORED.load(Ordering::Relaxed)),
        (libc::SIGTTOU, SIGTTOU_IGNORED.load(Ordering::Relaxed)),
    ]
}

/// Sets SIGCHLD to its default for good: where it is ignored, the kernel forgets how children ended.
pub fn hear_of_children() {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Lets this process write to its terminal although another process group has it, for good.
pub fn write_from_the_background() {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

extern "C" fn remember() {
    for (signal, ignored) in [
        (libc::SIGPIPE, &SIGPIPE_IGNORED),
        (libc::SIGCHLD, &SIGCHLD_IGNORED),
        (libc::SIGTTOU, &SIGTTOU_IGNORED),
    ] {
        // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null new action only reads; `now` outlives the call.
        let failed = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) } != 0;
        ignored.store(!failed && now.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
}

// SAFETY: `.init_array` holds pointers to functions the loader calls once, before `main`; this one
// takes no argument it reads, allocates nothing and touches only atomics.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;
