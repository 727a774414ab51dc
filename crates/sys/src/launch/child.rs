//! The child's side of a launch, between its making and its `execve`: async-signal-safe calls only,
//! no allocation, on memory made before.

use std::os::fd::{AsRawFd, RawFd};

use super::image::{Image, Pointers};
use super::{Command, Credentials, errno};
use crate::startup;

/// The stages in which a child can fail, reported with the errno.
pub(super) const STAGE_CREDENTIALS: i32 = 1;
const STAGE_EXEC: i32 = 2;
pub(super) const STAGE_GROUP: i32 = 3;
pub(super) const STAGE_STREAMS: i32 = 4;
pub(super) const STAGE_FILTER: i32 = 5;

/// Applies the command's settings to this process, calls `ready`, and executes the program; returns
/// only when that failed: the stage and the errno. Only async-signal-safe calls, no allocation,
/// also in `ready`.
pub(crate) fn become_program(
    command: &Command,
    image: &Image,
    mask: &libc::sigset_t,
    ready: &mut dyn FnMut(),
) -> (i32, i32) {
    for (signal, ignored) in startup::changed_signals() {
        let action = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: sets a disposition that needs no handler.
        unsafe { libc::signal(signal, action) };
    }
    if let Some(group) = command.setup.group {
        // SAFETY: takes plain integers.
        if unsafe { libc::setpgid(0, group.cast_signed()) } != 0 {
            return (STAGE_GROUP, errno());
        }
    }
    if let Some(streams) = &command.setup.streams {
        for (fd, stream) in [&streams.input, &streams.output, &streams.error].iter().enumerate() {
            let Some(stream) = stream else {
                // SAFETY: nobody in this process, which is to become another program, uses it.
                unsafe { libc::close(fd as RawFd) };
                continue;
            };
            // SAFETY: takes plain integers; the copy stays open in the program.
            if unsafe { libc::dup2(stream.as_raw_fd(), fd as RawFd) } < 0 {
                return (STAGE_STREAMS, errno());
            }
        }
    }
    // SAFETY: `mask` is an initialised set owned by the caller.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    if let Some(who) = &command.credentials
        && !become_user(who)
    {
        return (STAGE_CREDENTIALS, errno());
    }
    ready();
    if let Some(filter) = &command.setup.filter
        && let Err(errno) = filter.set()
    {
        return (STAGE_FILTER, errno);
    }
    execute(image.program.as_ptr(), &image.argv, &image.environment);
    if errno() == libc::ENOEXEC && image.may_be_script {
        execute(c"/bin/sh".as_ptr(), &image.shell_argv, &image.environment);
    }
    (STAGE_EXEC, errno())
}

fn execute(program: *const libc::c_char, argv: &Pointers, environment: &Pointers) {
    // SAFETY: the strings and NULL-terminated arrays were made before the fork and outlive it.
    unsafe { libc::execve(program, argv.raw.as_ptr(), environment.raw.as_ptr()) };
}

fn become_user(who: &Credentials) -> bool {
    // SAFETY: the slice's pointer and length describe readable memory.
    let groups = unsafe { libc::setgroups(who.groups.len(), who.groups.as_ptr()) };
    // SAFETY: plain integers.
    let gid = unsafe { libc::setgid(who.gid) };
    groups == 0 && gid == 0 && {
        // SAFETY: a plain integer.
        unsafe { libc::setuid(who.uid) == 0 }
    }
}
