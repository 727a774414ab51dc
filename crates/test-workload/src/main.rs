//! The subject of the observers' truth tests: a program that makes exactly 23 calls when 23 are
//! requested, by raw system calls, so that a test knows the count that an observer must report.
//!
//! It is not part of iotomy. It is the one exception to the rule that only `iotomy-sys` has unsafe
//! code: a wrapper, however thin, might make a different call than the one to be counted.
//!
//! The one invariant: no other part of the subject makes the calls under test, neither the loader
//! nor the language's runtime. For that reason it blocks in `readv` and not in `read`.

#![allow(unsafe_code, reason = "a test subject that makes raw system calls")]

mod files;
mod many;
mod messages;
mod notified;
mod raw;
mod ring;
mod ring_connections;
mod rings;
mod served;
mod signals;
mod title;

use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "subject COMMAND [NUMBER… FILE…]; see the source for the commands";

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = arguments.first().map_or("", String::as_str);
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(0u64);
    match command {
        // N calls of getppid.
        "getppid" => raw::getppid(number(1)),
        // N requests of io_uring by this way.
        "rings" => rings::run(arguments.get(1).map_or("", String::as_str), number(2)),
        // N requests over a connection with itself, which are served by this way.
        "served" => served::run(arguments.get(1).map_or("", String::as_str), number(2)),
        // Reads by workers of a ring; their CPU time in this file.
        "ring-workers" => rings::workers(&arguments[1]),
        // 23 openat calls that fail (ENOENT) and 7 readv calls that fail (EBADF).
        "errors" => raw::errors(),
        // N calls of the 32-bit getpid from a 64-bit program.
        "int80" => raw::int80(number(1)),
        // N writes to a pipe by the 32-bit call, each read back at once.
        "int80-write" => raw::int80_write(number(1)),
        // N calls of getppid, and N more that seccomp refuses.
        "refused" => raw::refused(number(1)),
        // N calls of getppid that seccomp answers with success, without making them.
        "answered" => raw::answered(number(1)),
        // N calls of getppid that another thread answers with 7, and N that it refuses (EACCES).
        "notified" => notified::run(number(1)),
        // N calls of sendmmsg and N of recvmmsg, each of three messages with 600 bytes.
        "messages" => messages::many(number(1)),
        // N times by each of three calls: a message of 1,000 bytes is looked at, then taken into 10 bytes.
        "peeked" => messages::peeked(number(1)),
        // N children that may not be traced, with 23 calls of getppid each, by clone and by clone3 in turn.
        "untraced" => many::untraced(number(1)),
        // N calls of getppid that seccomp replaces with a handled signal.
        "trapped" => raw::trapped(number(1)),
        // One call of getppid, for which seccomp ends the process.
        "killed-by-seccomp" => raw::killed_by_seccomp(),
        // One call of getppid in a separate thread, for which seccomp ends only that thread.
        "thread-killed-by-seccomp" => raw::thread_killed_by_seccomp(),
        // N calls of each of three unassigned numbers.
        "odd-numbers" => raw::odd_numbers(number(1)),
        // N times: six calls by numbers without a name, one of them of x32, and one by the 32-bit entry.
        "unnamed-numbers" => raw::unnamed_numbers(number(1)),
        // Prints "ready" and spins without a call until FILE's byte is not 0; then one sched_yield and N refused calls
        // of getppid.
        "refused-after-a-spin" => files::refused_after_a_spin(number(1), &arguments[2]),
        // N writes of SIZE bytes to a pipe, each read back at once.
        "pipe" => raw::pipe(number(1), number(2)),
        // N times: creates and closes an eventfd that is written to and a timerfd that has nothing to read.
        "anonymous" => files::anonymous(number(1)),
        // N mappings of 64 KiB of its own program, and N anonymous mappings with its descriptor.
        "maps" => files::maps(number(1)),
        // N times: runs the code in each of two FILEs, mapped at one address in turn.
        "swaps" => files::swaps(number(1), &arguments[2..]),
        // Reads one byte of each page of the mapped FILE, after dropping its pages from memory where possible.
        "touches" => files::touches(&arguments[1]),
        // N polls of 5 pipe ends, 2 of which are ready.
        "polls" => files::polls(number(1)),
        // One nanosleep of MS.
        "sleep" => raw::sleep(number(1)),
        // Reads of 16 MiB from the zero device until the thread has used MS of CPU time.
        "spin-read" => raw::spin_read(number(1)),
        // N times, at a whole millisecond: a read and a pread64 of 4 MiB from the zero device.
        "woken" => raw::woken(number(1)),
        // Confines itself to the first CPU that it may use, then makes N calls of getppid.
        "pinned" => many::pinned(number(1)),
        // T threads with N calls of getppid each.
        "threads" => many::threads(number(1), number(2)),
        // T threads, called worker-1, worker-2, …, with 23 calls of getppid in the first, 46 in the second, …
        "named-threads" => many::named_threads(number(1)),
        // For MS: four threads, each of which starts short-lived threads one after the other.
        "thread-storm" => many::thread_storm(number(1)),
        // N children, one after the other, with 23 calls of getppid each.
        "forks" => many::forks(number(1)),
        // N children by vfork, one after the other, with 23 calls of getppid each.
        "vforks" => many::vforks(number(1)),
        // N children at once, with one call of getppid each.
        "children" => many::children(number(1)),
        // DEPTH processes, each a child of the previous one, with one call of getppid each.
        "chain" => many::chain(number(1)),
        // N execve calls of itself, with one call of getppid in each image but the last.
        "execs" => many::execs(number(1)),
        // A thread dies inside a readv because another thread ends the process.
        "thread-dies" => many::thread_dies(),
        // A thread other than the first executes `getppid 23` while the first is in pause.
        "exec-from-thread" => many::exec_from_thread(),
        // Exits at once and leaves a child in a nanosleep of MS.
        "outlive" => many::outlive(number(1)),
        // Exits at once and leaves a child in pause, which prints "ready" and its process id.
        "outlive-ready" => many::outlive_ready(),
        // N signals to itself, each handled.
        "signal" => signals::handled(number(1), libc::SIGUSR1),
        // N real-time signals to itself, each handled.
        "signal-rt" => signals::handled(number(1), libc::SIGRTMIN() + 3),
        // A readv that a handled signal interrupts.
        "interrupted" => signals::interrupted(),
        // A child stops itself, is continued by its parent, then makes N calls of getppid.
        "stopped" => signals::stopped(number(1)),
        // N calls of getppid under its name, and N under each of these TITLEs.
        "titles" => title::each(number(1), &words[2..]),
        // The same in children, one for each TITLE, and none under its name.
        "titled-children" => title::children(number(1), &words[2..]),
        // Dies from signal N.
        "die" => signals::die(number(1)),
        // Prints "ready" and its process id, waits for a byte on stdin, then makes N calls of getppid in each of two
        // threads.
        "on-demand" => many::on_demand(number(1)),
        // The same of as many of THREADS threads as there may be, besides the first, which makes none.
        "many-on-demand" => many::many_on_demand(number(1), number(2)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
