//! The subject of the observers' truth tests: a program that does exactly 23 of a thing when told
//! to do 23, by raw system calls, so that a test can say what an observer must have counted.
//!
//! It is no part of iotomy. It is the one exception to the rule that only `iotomy-sys` has unsafe
//! code: a wrapper, however thin, might make another call than the one that is to be counted.
//!
//! The one invariant: the calls a subject is about are made by no other part of it, neither by the
//! loader nor by the language's runtime. That is why it blocks in `readv` and not in `read`.

#![allow(unsafe_code, reason = "a test subject that makes raw system calls")]

mod files;
mod many;
mod raw;
mod signals;

use std::process::ExitCode;

const USAGE: &str = "subject COMMAND [NUMBER… FILE…]; see the source for the commands";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = arguments.first().map_or("", String::as_str);
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(0u64);
    match command {
        // N calls of getppid.
        "getppid" => raw::getppid(number(1)),
        // 23 failing openat (ENOENT) and 7 failing readv (EBADF).
        "errors" => raw::errors(),
        // N calls of the 32-bit getpid from a 64-bit program.
        "int80" => raw::int80(number(1)),
        // N writes to a pipe by the 32-bit call, each read back at once.
        "int80-write" => raw::int80_write(number(1)),
        // N calls of getppid and N more that seccomp refuses.
        "refused" => raw::refused(number(1)),
        // N calls of getppid in place of which seccomp sends a signal, which has a handler.
        "trapped" => raw::trapped(number(1)),
        // One call of getppid for which seccomp ends the process.
        "killed-by-seccomp" => raw::killed_by_seccomp(),
        // The same, of a thread of its own that alone is ended.
        "thread-killed-by-seccomp" => raw::thread_killed_by_seccomp(),
        // N calls of each of three numbers that no call has.
        "odd-numbers" => raw::odd_numbers(number(1)),
        // Says "ready" and spins without a call until FILE's byte is no 0; then one sched_yield and N such
        // refused calls.
        "refused-after-a-spin" => files::refused_after_a_spin(number(1), &arguments[2]),
        // N writes of SIZE bytes to a pipe, each read back at once.
        "pipe" => raw::pipe(number(1), number(2)),
        // N times an eventfd that is written to and a timerfd that has nothing to read, made and closed.
        "anonymous" => files::anonymous(number(1)),
        // N mappings of 64 KiB of its own program, and as many anonymous ones with its descriptor.
        "maps" => files::maps(number(1)),
        // N times the code in each of two FILEs, mapped at one address in turn.
        "swaps" => files::swaps(number(1), &arguments[2..]),
        // A byte of each page of FILE, mapped, of which nothing is in memory any more where that can be had.
        "touches" => files::touches(&arguments[1]),
        // N polls of 5 ends of pipes of which 2 are ready.
        "polls" => files::polls(number(1)),
        // One nanosleep of MS.
        "sleep" => raw::sleep(number(1)),
        // Reads of 16 MiB from the zero device until the thread has been on a CPU for MS.
        "spin-read" => raw::spin_read(number(1)),
        // N times at a whole millisecond, a read and a pread64 of 4 MiB from the zero device.
        "woken" => raw::woken(number(1)),
        // T threads with N calls of getppid each.
        "threads" => many::threads(number(1), number(2)),
        // For MS, four threads that each make one short-lived thread after the other.
        "thread-storm" => many::thread_storm(number(1)),
        // N children, one after the other, with 23 calls of getppid each.
        "forks" => many::forks(number(1)),
        // The same by vfork.
        "vforks" => many::vforks(number(1)),
        // N children at once, with one call of getppid each.
        "children" => many::children(number(1)),
        // DEPTH processes, each the child of the one before, with one call of getppid each.
        "chain" => many::chain(number(1)),
        // N times itself anew by execve, with one call of getppid in each image but the last.
        "execs" => many::execs(number(1)),
        // A thread dies inside a readv because another ends the process.
        "thread-dies" => many::thread_dies(),
        // A thread that is not the first executes `getppid 23` while the first is in pause.
        "exec-from-thread" => many::exec_from_thread(),
        // Ends at once and leaves a child in a nanosleep of MS.
        "outlive" => many::outlive(number(1)),
        // The same with a child that says "ready" and its process id, and is in pause.
        "outlive-ready" => many::outlive_ready(),
        // N signals to itself, each handled.
        "signal" => signals::handled(number(1), libc::SIGUSR1),
        // The same with a real-time signal.
        "signal-rt" => signals::handled(number(1), libc::SIGRTMIN() + 3),
        // A readv that a handled signal interrupts.
        "interrupted" => signals::interrupted(),
        // A child that stops itself, is continued by its parent, then makes N calls of getppid.
        "stopped" => signals::stopped(number(1)),
        // Dies of signal N.
        "die" => signals::die(number(1)),
        // Says "ready" and its process id, waits for a byte on stdin, then N calls of getppid in each of two threads.
        "on-demand" => many::on_demand(number(1)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
