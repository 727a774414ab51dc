//! Threads, processes and program images.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::raw;

pub(crate) fn threads(count: u64, calls: u64) {
    let all: Vec<_> = (0..count).map(|_| std::thread::spawn(move || raw::getppid(calls))).collect();
    for thread in all {
        thread.join().expect("a thread that only calls");
    }
}

pub(crate) fn pinned(calls: u64) {
    let allowed = sched_getaffinity(None).expect("the CPUs that are allowed");
    let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).expect("a CPU");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("one of those");
    raw::getppid(calls);
}

pub(crate) fn named_threads(count: u64) {
    let start = |at: u64| {
        let named = std::thread::Builder::new().name(format!("worker-{at}"));
        named.spawn(move || raw::getppid(23 * at)).expect("a thread")
    };
    let all: Vec<_> = (1..=count).map(start).collect();
    all.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
}

pub(crate) fn thread_storm(ms: u64) {
    let until = std::time::Instant::now() + std::time::Duration::from_millis(ms);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while std::time::Instant::now() < until {
                    std::thread::spawn(|| raw::getppid(23)).join().expect("it does not panic");
                }
            });
        }
    });
}

/// Forks a child that runs `body`, which may only make system calls, and then ends.
pub(crate) fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child only makes system calls and ends with `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            body();
            leave(0)
        }
        pid => {
            assert!(pid > 0);
            pid
        }
    }
}

fn leave(code: i32) -> ! {
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(code) }
}

pub(crate) fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }, pid);
    assert_eq!(status, 0);
}

pub(crate) fn forks(count: u64) {
    for _ in 0..count {
        wait(fork(|| raw::getppid(23)));
    }
}

/// Children that a tracer of this process does not get, by clone and by clone3 in turn.
pub(crate) fn untraced(count: u64) {
    const CLONE_UNTRACED: u64 = 0x0080_0000;
    for nth in 0..count {
        let (flags, signal) = (CLONE_UNTRACED, libc::SIGCHLD as u64);
        let arguments = [flags, 0, 0, 0, signal, 0, 0, 0];
        let pid = match nth % 2 {
            // SAFETY: as fork(2): the child has memory of its own.
            0 => unsafe { libc::syscall(libc::SYS_clone, flags | signal, 0, 0, 0, 0) },
            // SAFETY: the same; the arguments are there until the call has returned.
            _ => unsafe {
                libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments))
            },
        };
        if pid == 0 {
            raw::getppid(23);
            leave(0);
        }
        wait(i32::try_from(pid).expect("a process"));
    }
}

extern "C" fn vforked(_: *mut libc::c_void) -> i32 {
    raw::getppid(23);
    leave(0)
}

/// Uses `clone` with the flags of `vfork` and a separate stack: `vfork` returns twice on one stack,
/// which among compiled languages only C supports.
pub(crate) fn vforks(count: u64) {
    let mut stack = vec![0u128; 4096];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    for _ in 0..count {
        // SAFETY: the stack outlives the child, because the parent waits for it; the child only
        // makes calls.
        let pid = unsafe { libc::clone(vforked, top, flags, std::ptr::null_mut()) };
        assert!(pid > 0);
        wait(pid);
    }
}

pub(crate) fn children(count: u64) {
    let all: Vec<i32> = (0..count).map(|_| fork(|| raw::getppid(1))).collect();
    all.into_iter().for_each(wait);
}

pub(crate) fn chain(depth: u64) {
    raw::getppid(1);
    if depth > 1 {
        wait(fork(|| chain(depth - 1)));
    }
}

/// Executes this program again, with `arguments`.
fn execute(arguments: &[&str]) -> ! {
    let program = std::env::current_exe().expect("the path of this program");
    let program = CString::new(program.as_os_str().as_bytes()).expect("a path");
    let texts: Vec<CString> =
        arguments.iter().map(|text| CString::new(*text).expect("a text")).collect();
    let argv: Vec<_> = [program.as_ptr()]
        .into_iter()
        .chain(texts.iter().map(|text| text.as_ptr()))
        .chain([std::ptr::null()])
        .collect();
    // SAFETY: the strings and the NULL-terminated array outlive the call.
    unsafe { libc::execv(program.as_ptr(), argv.as_ptr()) };
    panic!("cannot execute {program:?}");
}

pub(crate) fn execs(count: u64) {
    if count > 0 {
        raw::getppid(1);
        execute(&["execs", &(count - 1).to_string()]);
    }
}

/// Waits until thread `tid` of this process is in the call with this number, according to `/proc`,
/// so that no sleep needs a guessed duration.
fn wait_until_in_call(tid: i32, number: i64) {
    let path = format!("/proc/self/task/{tid}/syscall");
    let wanted = format!("{number} ");
    while !std::fs::read_to_string(&path).is_ok_and(|now| now.starts_with(&wanted)) {
        std::thread::yield_now();
    }
}

fn this_thread() -> i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

pub(crate) fn thread_dies() {
    let [reader, _writer] = raw::new_pipe();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tell.send(this_thread()).expect("somebody listens");
        raw::readv(reader, &mut 0);
    });
    let tid = told.recv().expect("the thread tells");
    wait_until_in_call(tid, libc::SYS_readv);
    // SAFETY: ends this process at once.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
}

pub(crate) fn exec_from_thread() {
    let first = this_thread();
    std::thread::spawn(move || {
        wait_until_in_call(first, libc::SYS_pause);
        execute(&["getppid", "23"]);
    });
    loop {
        // SAFETY: takes no arguments.
        unsafe { libc::syscall(libc::SYS_pause) };
    }
}

pub(crate) fn outlive(ms: u64) {
    fork(|| raw::sleep(ms));
}

pub(crate) fn outlive_ready() {
    fork(|| {
        ready();
        // The parent's reader waits for the end of this output.
        // SAFETY: closes the standard output, to which nothing writes any more.
        unsafe { libc::close(1) };
        // SAFETY: takes no arguments.
        unsafe { libc::syscall(libc::SYS_pause) };
    });
}

pub(crate) fn ready() {
    println!("ready {}", std::process::id());
    std::io::stdout().flush().expect("somebody reads");
}

pub(crate) fn many_on_demand(threads: u64, calls: u64) {
    let closed = std::sync::RwLock::new(());
    std::thread::scope(|scope| {
        let gate = closed.write().expect("nobody panics");
        for _ in 0..threads {
            let small = std::thread::Builder::new().stack_size(16 << 10);
            let work = || {
                drop(closed.read());
                raw::getppid(calls);
            };
            if small.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        ready();
        let _ = std::io::stdin().read(&mut [0]);
        drop(gate);
    });
}

pub(crate) fn on_demand(calls: u64) {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || {
        let _ = wait.recv();
        raw::getppid(calls);
    });
    ready();
    let _ = std::io::stdin().read(&mut [0]);
    drop(go);
    raw::getppid(calls);
    second.join().expect("a thread that only calls");
}
