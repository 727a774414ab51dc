//! Splits this process in three: one that works, and two in front of it that end its leftovers when
//! it is killed.
//!
//! A process that has left its group and whose parent is gone belongs only to the next process
//! above that adopts orphans. Its creator cannot end it once it was killed itself; the creator's
//! parents can. So the process that was started stays in front, only waits and passes signals on;
//! its child, the guard, does the same, and has the work done by a child of its own. Whichever are
//! killed, one at a time or two at once:
//!
//! - the worker, alone or with one of the others: what it had running is now another's, which kills it
//!   all;
//! - the front, alone or with the guard: the worker gets a SIGTERM, and ends in order;
//! - the guard: the worker gets a SIGTERM, and the front ends what is left.
//!
//! If all three are killed at once, nobody can end the rest: a parent-death signal reaches its
//! children and not theirs.
//!
//! Guard and worker have a process group of their own, so that signals to the front's group, from
//! the terminal or by `kill`, reach the worker once, from the front. To be called while there is
//! one thread.

use std::io;

use crate::own_name::OwnName;
use crate::signals::{is_ignored, is_let_pass};
use crate::{orphans, startup};

/// The signals with which users and supervisors end a program; they are passed on.
const PASSED_ON: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The names in lists of processes, so that a kill by the name of the program, by its command line,
/// or by the name of the worker leaves one of the three alive.
const GUARD: &std::ffi::CStr = c"race-guard";
const WORKER: &std::ffi::CStr = c"iotomy-race";

/// Puts this process in front; returns in the worker only.
///
/// # Errors
/// When the others cannot be made; then this process is as it was.
pub fn split() -> io::Result<()> {
    startup::reset_sigchld();
    let bystanders = orphans::children();
    orphans::become_subreaper()?;
    let waited_for = signals();
    // SAFETY: `sigset_t` is plain integers.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `waited_for` is an initialised set and `before` room for one.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const waited_for, &raw mut before) };
    // SAFETY: takes nothing.
    let front = unsafe { libc::getpid() };
    let guards_name = OwnName::new(GUARD);
    // SAFETY: there is one thread, as the module's comment asks for, so the child is whole.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            set_mask(&before);
            return Err(error);
        }
        0 => {}
        guard => {
            // The guard does the same: after the first of both calls, the group exists.
            // SAFETY: takes plain integers.
            unsafe { libc::setpgid(guard, guard) };
            let status = attend(guard, None, &waited_for);
            end_as(status, &bystanders)
        }
    }
    // SAFETY: takes plain integers.
    unsafe { libc::setpgid(0, 0) };
    // A signal that this process waits for, and that is never ignored.
    begin(front, libc::SIGCHLD);
    // Otherwise orphans go to the front, as they do when this process is killed.
    let _ = orphans::become_subreaper();
    // SAFETY: takes nothing.
    let guard = unsafe { libc::getpid() };
    // SAFETY: as above.
    let worker = unsafe { libc::fork() };
    if worker > 0 {
        // Not before the worker is made: that one needs the words of the command line.
        guards_name.take();
        let status = attend(worker, Some(front), &waited_for);
        end_as(status, &[])
    }
    // A guard that can create no worker does the work itself: the front is there all the same.
    let parent = if worker == 0 { guard } else { front };
    begin(parent, at_its_end());
    // SAFETY: the name is a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, WORKER.as_ptr(), 0, 0, 0) };
    startup::write_from_the_background();
    set_mask(&before);
    Ok(())
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a set the kernel filled in.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// The signals the front waits for: those to pass on unless this process was told to ignore them,
/// as by `nohup`, and those of its child and of a terminal that stops it. Keys of a terminal are looked at when they come.
fn signals() -> libc::sigset_t {
    // SAFETY: `sigset_t` is plain integers; the empty set is then written over it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is room for a set.
    unsafe { libc::sigemptyset(&raw mut set) };
    let wanted = PASSED_ON.into_iter().chain([libc::SIGTSTP]);
    let wanted = wanted.filter(|signal| !is_ignored(*signal));
    for signal in wanted.chain([libc::SIGCHLD]) {
        // SAFETY: `set` is an initialised set and the signal exists.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// The signal that a worker gets when its parent has ended: SIGKILL, as one that ignores SIGTERM
/// would outlive it.
fn at_its_end() -> libc::c_int {
    if is_ignored(libc::SIGTERM) { libc::SIGKILL } else { libc::SIGTERM }
}

/// The first steps of a child of `parent`, whose end it is notified of by this signal.
fn begin(parent: libc::pid_t, at_its_end: libc::c_int) {
    // SAFETY: takes plain integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, at_its_end, 0, 0, 0) };
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } != parent {
        // The parent ended before its end could be observed. Nothing was begun.
        // SAFETY: takes a plain integer and does not return.
        unsafe { libc::_exit(128 + libc::SIGTERM) };
    }
}

/// Passes signals on until the child has ended; how it did, as `waitpid(2)` has it. The end of `parent`,
/// if there is one, is passed on as a wish for the child's.
fn attend(
    child: libc::pid_t,
    mut parent: Option<libc::pid_t>,
    waited_for: &libc::sigset_t,
) -> libc::c_int {
    loop {
        // SAFETY: a zeroed `siginfo_t` is a valid value of the type.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `waited_for` is an initialised set, and `info` room for what is known of the signal.
        let signal = unsafe { libc::sigwaitinfo(waited_for, &raw mut info) };
        if PASSED_ON.contains(&signal) && !is_let_pass(signal, info.si_code) {
            // SAFETY: takes plain integers; the child has not been waited for.
            unsafe { libc::kill(child, signal) };
        } else if signal == libc::SIGTSTP && parent.is_none() {
            stop_all(child);
        }
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        let got = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        let is_lost = got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        if got == child || is_lost {
            return status;
        }
        // SAFETY: takes nothing.
        if parent.is_some_and(|parent| parent != unsafe { libc::getppid() }) {
            parent = None;
            // SAFETY: as above.
            unsafe { libc::kill(child, at_its_end()) };
        }
    }
}

/// Stops with the others, as a job of a shell does, until it is continued.
fn stop_all(guard: libc::pid_t) {
    // SAFETY: takes plain integers; the guard has not been waited for, and the group is its own.
    unsafe { libc::kill(-guard, libc::SIGSTOP) };
    take_by_default(libc::SIGTSTP);
    // SAFETY: as above.
    unsafe { libc::kill(-guard, libc::SIGCONT) };
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

/// Ends as the child did. A killed one left behind its own processes, or those of its child.
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
