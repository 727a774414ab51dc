//! This process in two: one that works, and one in front of it that ends what the other leaves when
//! it is killed.
//!
//! A process that has left its group and whose parent is gone belongs to nobody but the next process
//! above that adopts orphans. Whoever made it cannot end it once it was killed itself; its parent
//! can. So the process that was started stays in front, does nothing but wait and pass signals on,
//! and has the work done by a child:
//!
//! - the worker is killed: what it had running is now the front's, which kills it all;
//! - the front is killed: the worker gets a SIGTERM, and ends in order.
//!
//! The worker has a process group of its own, so that what is sent to the front's, by the terminal or
//! by `kill`, comes to the worker once, from the front. To be called while there is one thread.

use std::io;

use crate::{orphans, startup};

/// What a user or a supervisor ends a program with, and passed on.
const PASSED_ON: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The worker's name in lists of processes, so that who kills by the name of the program kills one
/// of the two.
const NAME: &std::ffi::CStr = c"iotomy-race";

/// Puts this process in front; returns in the worker only.
///
/// # Errors
/// When the worker cannot be made; then this process is as it was.
pub fn split() -> io::Result<()> {
    startup::hear_of_children();
    let bystanders = orphans::children();
    orphans::adopt()?;
    let waited_for = signals();
    // SAFETY: `sigset_t` is plain integers.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `waited_for` is an initialised set and `before` room for one.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const waited_for, &raw mut before) };
    // SAFETY: takes nothing.
    let front = unsafe { libc::getpid() };
    // SAFETY: there is one thread, as the module's comment asks for, so the child is whole.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            set_mask(&before);
            Err(error)
        }
        0 => {
            begin_work(front);
            set_mask(&before);
            Ok(())
        }
        worker => {
            // The worker does the same: whoever is first, the group is there from here on.
            // SAFETY: takes plain integers.
            unsafe { libc::setpgid(worker, worker) };
            let status = attend(worker, &waited_for);
            end_as(status, &bystanders)
        }
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a set the kernel filled in.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// The signals the front waits for: those passed on unless this process was told to ignore them, as
/// `nohup` does, and those of its worker and of a terminal that stops it.
fn signals() -> libc::sigset_t {
    // SAFETY: `sigset_t` is plain integers; the empty set is then written over it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is room for a set.
    unsafe { libc::sigemptyset(&raw mut set) };
    let wanted = PASSED_ON.into_iter().chain([libc::SIGTSTP]).filter(|signal| !is_ignored(*signal));
    for signal in wanted.chain([libc::SIGCHLD]) {
        // SAFETY: `set` is an initialised set and the signal exists.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only reads; `now` outlives the call.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) } != 0;
    !failed && now.sa_sigaction == libc::SIG_IGN
}

/// The worker's first steps.
fn begin_work(front: libc::pid_t) {
    // A worker that ignores SIGTERM would outlive its front.
    let at_its_end = if is_ignored(libc::SIGTERM) { libc::SIGKILL } else { libc::SIGTERM };
    // SAFETY: takes plain integers.
    unsafe { libc::setpgid(0, 0) };
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, at_its_end, 0, 0, 0) };
    // SAFETY: the name is a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr(), 0, 0, 0) };
    startup::write_from_the_background();
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } != front {
        // The front was gone before it could be heard of. Nothing was begun.
        // SAFETY: takes a plain integer and does not return.
        unsafe { libc::_exit(128 + libc::SIGTERM) };
    }
}

/// Passes signals on until the worker has ended; how it did, as `waitpid(2)` has it.
fn attend(worker: libc::pid_t, waited_for: &libc::sigset_t) -> libc::c_int {
    loop {
        // SAFETY: `waited_for` is an initialised set; nothing more is asked for.
        let signal = unsafe { libc::sigwaitinfo(waited_for, std::ptr::null_mut()) };
        if PASSED_ON.contains(&signal) {
            // SAFETY: takes plain integers; the worker has not been waited for.
            unsafe { libc::kill(worker, signal) };
        } else if signal == libc::SIGTSTP {
            stop_both(worker);
        }
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        let got = unsafe { libc::waitpid(worker, &raw mut status, libc::WNOHANG) };
        let is_lost = got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        if got == worker || is_lost {
            return status;
        }
    }
}

/// Stops with the worker, as a job of a shell does, until somebody goes on with it.
fn stop_both(worker: libc::pid_t) {
    // SAFETY: takes plain integers; the worker has not been waited for.
    unsafe { libc::kill(worker, libc::SIGSTOP) };
    take_by_default(libc::SIGTSTP);
    // SAFETY: as above.
    unsafe { libc::kill(worker, libc::SIGCONT) };
}

/// Sends this process a signal and lets it have its usual effect.
fn take_by_default(signal: libc::c_int) {
    // SAFETY: `sigset_t` is plain integers; the empty set is then written over it.
    let mut only: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = only;
    // SAFETY: `only` is room for a set.
    unsafe { libc::sigemptyset(&raw mut only) };
    // SAFETY: `only` is an initialised set and the signal exists.
    unsafe { libc::sigaddset(&raw mut only, signal) };
    // SAFETY: sets a disposition that needs no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: takes a plain integer.
    unsafe { libc::raise(signal) };
    // SAFETY: `only` is an initialised set and `before` room for one.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only, &raw mut before) };
    set_mask(&before);
}

/// Ends as the worker did. One that was killed left behind what it had running.
fn end_as(status: libc::c_int, bystanders: &[u32]) -> ! {
    let mut code = libc::WEXITSTATUS(status);
    if libc::WIFSIGNALED(status) {
        orphans::end(bystanders);
        take_by_default(libc::WTERMSIG(status));
        code = 128 + libc::WTERMSIG(status);
    }
    // SAFETY: takes a plain integer and does not return; nothing is buffered on this side.
    unsafe { libc::_exit(code) }
}
