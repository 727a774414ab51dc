//! The start of the process, and the inherited settings from before.
//!
//! SIGPIPE is ignored, as Rust's runtime has it, and a watch cannot do with an ignored SIGCHLD. A command
//! that iotomy starts must get the dispositions iotomy itself was started with, so they are read before.
//!
//! Faults end the process as they do one without a runtime, see `leave_faults_alone`.
//!
//! A standard stream that was closed must stay closed for that command, too. Rust's runtime opens
//! the null device in its place, without close-on-exec, so it is opened here, before the runtime
//! checks.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::signals;

/// Standard input, output and error that were closed when the process was started.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Whether a standard stream was closed when the process was started. The null device is there in its
/// place, for this process alone: as standard input it gives nothing, as standard error it takes everything without a word, and
/// as standard output it is not open for writing.
pub fn was_closed(stream: BorrowedFd<'_>) -> bool {
    let closed = usize::try_from(stream.as_raw_fd()).ok().and_then(|fd| CLOSED.get(fd));
    closed.is_some_and(|closed| closed.load(Ordering::Relaxed))
}

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static SIGCHLD_IGNORED: AtomicBool = AtomicBool::new(false);
static SIGTTOU_IGNORED: AtomicBool = AtomicBool::new(false);

/// The signals whose dispositions are changed here, each with whether it was ignored when this
/// process was started.
pub fn changed_signals() -> impl Iterator<Item = (libc::c_int, bool)> {
    let always = [
        (libc::SIGPIPE, SIGPIPE_IGNORED.load(Ordering::Relaxed)),
        (libc::SIGCHLD, SIGCHLD_IGNORED.load(Ordering::Relaxed)),
        (libc::SIGTTOU, SIGTTOU_IGNORED.load(Ordering::Relaxed)),
    ];
    let file_size = signals::changed_file_size().map(|ignored| (libc::SIGXFSZ, ignored));
    let keys = signals::heeded_keys().map(|key| (key, true));
    always.into_iter().chain(file_size).chain(keys)
}

/// Sets SIGCHLD to its default for good: where it is ignored, the kernel forgets how children ended.
pub fn reset_sigchld() {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Lets this process write to its terminal although another process group has it, for good.
pub fn write_from_the_background() {
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

extern "C" fn remember() {
    remember_signals();
    leave_faults_alone();
    occupy_closed_streams();
}

/// Keeps Rust's runtime from handling faults: it would give every thread a stack to report an
/// overflow of its own on, and where memory is short (`ulimit -v`) a new thread that gets none
/// ends the process, which no caller can prevent. The runtime leaves a signal alone that has a
/// handler.
fn leave_faults_alone() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null new action only reads; `now` outlives the call.
        let failed = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) } != 0;
        if failed || now.sa_sigaction != libc::SIG_DFL {
            continue;
        }
        now.sa_sigaction = end as *const () as usize;
        now.sa_flags = libc::SA_RESETHAND;
        // SAFETY: `now` is a whole action; its handler is safe to run at any time.
        unsafe { libc::sigaction(signal, &raw const now, std::ptr::null_mut()) };
    }
}

/// Runs when the disposition is the default again, with which the process then ends.
extern "C" fn end(signal: libc::c_int) {
    // SAFETY: it may be called in a handler, and the signal waits until this returns.
    unsafe { libc::raise(signal) };
}

fn remember_signals() {
    for (signal, ignored) in [
        (libc::SIGPIPE, &SIGPIPE_IGNORED),
        (libc::SIGCHLD, &SIGCHLD_IGNORED),
        (libc::SIGTTOU, &SIGTTOU_IGNORED),
    ] {
        ignored.store(signals::is_ignored(signal), Ordering::Relaxed);
    }
}

/// Opens the null device in place of the standard streams that are closed: a file that is opened must not become one.
fn occupy_closed_streams() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: asks for a flag of a number that need not be a descriptor.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            closed.store(true, Ordering::Relaxed);
            // Output is refused then, as by a closed descriptor.
            let access = if fd == libc::STDOUT_FILENO { libc::O_RDONLY } else { libc::O_RDWR };
            // A command that is started sees the stream as it was given: closed.
            let flags = access | libc::O_CLOEXEC;
            // SAFETY: the path is a C string; the lowest free number, which is this, is taken.
            unsafe { libc::open(c"/dev/null".as_ptr(), flags) };
        }
    }
}

// SAFETY: `.init_array` holds pointers to functions the loader calls once, before `main`; this one
// takes no argument it reads, allocates nothing and touches only atomics and descriptors.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;
