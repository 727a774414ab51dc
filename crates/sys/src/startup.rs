//! The start of the process, and what it was given before that changed it.
//!
//! SIGPIPE is ignored, as Rust's runtime has it, and a watch cannot do with an ignored SIGCHLD. A command
//! that iotomy starts must get the dispositions iotomy itself was started with, so they are read before.
//!
//! [`main!`](crate::main) takes the place of the runtime's own start, which reads /proc/self/maps to find
//! the end of the stack, and sets up a stack for a message about its overflow: a tenth of the time of a
//! small copy. Without it such an overflow ends the process by SIGSEGV and without a word.

use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::signals;
use crate::stack::on_enough;

/// Makes a function `fn() -> ExitCode` what the process starts with. The crate is `no_main`.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        // SAFETY: there is one `main` in a program, and the C library calls it with what it ignores.
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::startup::run($run)
        }

        #[global_allocator]
        static MEMORY: $crate::memory::Memory = $crate::memory::Memory;
    };
}

/// The status of what could not be run.
const COULD_NOT_RUN: i32 = 2;

/// The status of a process that panicked, as the runtime has it.
const PANICKED: i32 = 101;

/// Does what the runtime does before and after a `main`, but for a handler of overflows of the stack.
pub fn run(main: fn() -> ExitCode) -> ! {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // A file that is opened must not become a standard stream.
        // SAFETY: asks for a flag of a number that need not be a descriptor.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            closed.store(true, Ordering::Relaxed);
            // What would be printed is refused, as by a closed descriptor.
            let access = if fd == libc::STDOUT_FILENO { libc::O_RDONLY } else { libc::O_RDWR };
            // A command that is started sees the stream as it was given: closed.
            let flags = access | libc::O_CLOEXEC;
            // SAFETY: the path is a C string; the lowest free number, which is this, is taken.
            unsafe { libc::open(c"/dev/null".as_ptr(), flags) };
        }
    }
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let status =
        on_enough(|| catch_unwind(main).map_or(PANICKED, number)).unwrap_or_else(|error| {
            // With standard error gone there is nobody left to tell.
            let _ = writeln!(
                std::io::stderr(),
                "iotomy: cannot get memory for a stack: {error}; raise the limit (ulimit -s, -v)"
            );
            COULD_NOT_RUN
        });
    // Flushes standard output.
    std::process::exit(status)
}

/// Standard input, output and error that were closed when the process was started.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Whether a standard stream was closed when the process was started. The null device is there in its
/// place, for this process alone: as standard input it gives nothing, as standard error it takes everything without a word, and
/// as standard output it is not open for writing.
pub fn was_closed(stream: BorrowedFd<'_>) -> bool {
    let closed = usize::try_from(stream.as_raw_fd()).ok().and_then(|fd| CLOSED.get(fd));
    closed.is_some_and(|closed| closed.load(Ordering::Relaxed))
}

/// The number of an exit code, which the standard library tells nobody.
fn number(code: ExitCode) -> i32 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).map_or(PANICKED, i32::from)
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
    always.into_iter().chain(file_size)
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
