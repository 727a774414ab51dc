//! Whether a thread of this process sleeps in a call: what tests wait for instead of some time.

use iotomy_sys::syscalls::{self, Abi};
use iotomy_waiters::Declaration;

/// The calling thread, for others to look at.
pub(crate) fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Comes back when the thread sleeps in the call its waiter waits by; at once where it never sleeps.
pub(crate) fn until_asleep(thread: i32, waiter: &Declaration) {
    if !waiter.abilities.sleeps {
        return;
    }
    let number = syscalls::number(Abi::X86_64, waiter.calls.wait[0].name).unwrap();
    let path = format!("/proc/self/task/{thread}/syscall");
    loop {
        let told = std::fs::read_to_string(&path).unwrap();
        if told.split(' ').next() == Some(&number.to_string()) {
            return;
        }
        std::thread::yield_now();
    }
}

/// Comes back when no signal is pending for the thread alone.
pub(crate) fn until_signals_are_handled(thread: i32) {
    let path = format!("/proc/self/task/{thread}/status");
    loop {
        let status = std::fs::read_to_string(&path).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
        if u64::from_str_radix(pending.trim(), 16).unwrap() == 0 {
            return;
        }
        std::thread::yield_now();
    }
}
