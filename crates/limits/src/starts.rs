//! The cost of starting a process, a program or a thread, including its end and the wait for it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use iotomy_host::Skip;
use iotomy_sys::starts;
use rustix::fs::{MemfdFlags, memfd_create};

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "fork",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a process forked",
        method: "fork of iotomy, _exit in the child, wait",
        man: &["fork(2)", "waitpid(2)", "_exit(2)"],
        measure: fork,
    },
    LimitDeclaration {
        name: "exec",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a program executed",
        method: "posix_spawn (vfork, execve) of a static program of 129 bytes that exits, wait",
        man: &["posix_spawn(3)", "execve(2)", "memfd_create(2)"],
        measure: exec,
    },
    LimitDeclaration {
        name: "thread-start",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a thread started",
        method: "pthread_create of a thread that ends at once, pthread_join",
        man: &["pthread_create(3)", "clone(2)", "pthread_join(3)"],
        measure: thread_start,
    },
];

fn fork(_: &Context<'_>) -> Result<Figure, Skip> {
    starts::reset_sigchld();
    Budget::LONG.ns_per_call(|count| {
        (0..count).try_for_each(|_| starts::fork_and_wait()).map_err(|e| Skip::refused("fork", e))
    })
}

fn exec(_: &Context<'_>) -> Result<Figure, Skip> {
    starts::reset_sigchld();
    let file = memfd_create("iotomy-smallest", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.map_err(|e| Skip::refused("memfd_create", e))?);
    file.write_all(&starts::smallest_program()).map_err(|e| Skip::refused("write", e))?;
    Budget::LONG.ns_per_call(|count| {
        let once = || starts::spawn_and_wait(file.as_fd());
        (0..count).try_for_each(|_| once()).map_err(|e| Skip::refused("posix_spawn of a memfd", e))
    })
}

fn thread_start(_: &Context<'_>) -> Result<Figure, Skip> {
    Budget::LONG.ns_per_call(|count| {
        (0..count)
            .try_for_each(|_| starts::thread_and_join())
            .map_err(|e| Skip::refused("pthread_create", e))
    })
}
