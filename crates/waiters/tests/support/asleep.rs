//! Whether a thread of this process sleeps in a call: what tests wait for instead of some time.

use std::time::Instant;

use iotomy_sys::syscalls::{self, Abi};
use iotomy_waiters::WaiterDeclaration;

use super::PATIENCE;

/// The calling thread, for others to look at.
pub(crate) fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Comes back when the thread sleeps in a call its waiter waits by; at once where it never sleeps. A call
/// that the kernel itself has disturbed, as when a ring the thread had is taken down, goes on as
/// restart_syscall(2).
pub(crate) fn until_asleep(thread: i32, waiter: &WaiterDeclaration) {
    if !waiter.capabilities.sleeps {
        return;
    }
    let number = |name| syscalls::number(Abi::X86_64, name).unwrap().to_string();
    let waits = waiter.calls.wait.iter().map(|call| call.name);
    let asleep: Vec<_> = waits.chain(["restart_syscall"]).map(number).collect();
    let path = format!("/proc/self/task/{thread}/syscall");
    let began = Instant::now();
    loop {
        let told = std::fs::read_to_string(&path).unwrap();
        if told.split(' ').next().is_some_and(|call| asleep.iter().any(|number| number == call)) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{} does not fall asleep: {told}", waiter.name);
        std::thread::yield_now();
    }
}

/// Comes back when no signal is pending for the thread alone.
pub(crate) fn until_signals_are_handled(thread: i32) {
    let path = format!("/proc/self/task/{thread}/status");
    let began = Instant::now();
    loop {
        let status = std::fs::read_to_string(&path).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
        if u64::from_str_radix(pending.trim(), 16).unwrap() == 0 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "a signal stays pending");
        std::thread::yield_now();
    }
}
