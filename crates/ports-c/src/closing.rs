//! The functions that close descriptors: what is watched of the descriptor ends first, also if a duplicate
//! of it stays open, and so does a port or a queue of which it is the last descriptor.
//!
//! The system calls are made directly, so that `close` can be called in handlers of signals, and before
//! the dynamic linker is done. Not seen are closes by raw system calls, and by functions of the C
//! library that are not here.

use std::ffi::{c_int, c_long, c_uint};
use std::mem::transmute;

use iotomy_ports::Errno;
use iotomy_sys::forks;

use crate::calls::fail;
use crate::opened::{PORTS, QUEUES, SETS};
use crate::replaced::{CLOSEDIR, FCLOSE};

const CLOSE_RANGE_CLOEXEC: c_int = 4;

/// Whether there is anything that ends with a descriptor of this process.
fn is_of_interest() -> bool {
    (PORTS.is_used() || SETS.is_used() || QUEUES.is_used()) && !forks::is_borrower()
}

/// Takes note that a descriptor is about to be closed.
fn forget(fd: c_int) {
    if !is_of_interest() {
        return;
    }
    keeping_errno(|| {
        let closing = fd.cast_unsigned()..=fd.cast_unsigned();
        PORTS.leave(fd, &closing);
        SETS.leave(fd, &closing);
        QUEUES.leave(fd, &closing);
        for port in PORTS.all() {
            port.forget(fd);
        }
        for set in SETS.all() {
            set.forget(fd);
        }
        for queue in QUEUES.all() {
            queue.forget(fd);
        }
    });
}

/// Does something of which the caller's `errno` is to show nothing: a handler of a signal may close without
/// keeping it, because a close that succeeds leaves it.
fn keeping_errno(act: impl FnOnce()) {
    // SAFETY: takes no arguments and cannot fail.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    let before = unsafe { errno.read() };
    act();
    // SAFETY: as above.
    unsafe { errno.write(before) };
}

fn call(number: c_long, arguments: [c_long; 3]) -> c_int {
    let [a, b, c] = arguments;
    // SAFETY: the numbers below take integers only.
    unsafe { libc::syscall(number, a, b, c) as c_int }
}

/// `int close(int fd)`.
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: c_int) -> c_int {
    forget(fd);
    call(libc::SYS_close, [fd.into(), 0, 0])
}

fn duplicate(old: c_int, new: c_int, flags: Option<c_int>) -> c_int {
    // It closes nothing if it fails.
    if old != new && iotomy_sys::same_file::is_open(old) {
        forget(new);
    }
    match flags {
        None => call(libc::SYS_dup2, [old.into(), new.into(), 0]),
        Some(flags) => call(libc::SYS_dup3, [old.into(), new.into(), flags.into()]),
    }
}

/// `int dup2(int oldfd, int newfd)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    duplicate(old, new, None)
}

/// `int dup3(int oldfd, int newfd, int flags)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    duplicate(old, new, Some(flags))
}

/// `int close_range(unsigned int first, unsigned int last, int flags)`.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags & CLOSE_RANGE_CLOEXEC == 0 && first <= last && is_of_interest() {
        keeping_errno(|| {
            let closing = first..=last;
            let is_in_range = |fd: &c_int| closing.contains(&fd.cast_unsigned());
            for port in PORTS.descriptors().filter(is_in_range) {
                PORTS.leave(port, &closing);
            }
            for set in SETS.descriptors().filter(is_in_range) {
                SETS.leave(set, &closing);
            }
            for queue in QUEUES.descriptors().filter(is_in_range) {
                QUEUES.leave(queue, &closing);
            }
            for port in PORTS.all() {
                port.forget_range(first, last);
            }
            for set in SETS.all() {
                set.forget_range(first, last);
            }
            for queue in QUEUES.all() {
                queue.forget_range(first, last);
            }
        });
    }
    call(libc::SYS_close_range, [first.into(), last.into(), flags.into()])
}

/// `void closefrom(int lowfd)`.
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(lowest: c_int) {
    close_range(lowest.max(0).cast_unsigned(), c_uint::MAX, 0);
}

/// `int fclose(FILE *stream)`.
///
/// # Safety
/// As fclose(3): the stream is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut libc::FILE) -> c_int {
    let own = FCLOSE.address();
    if own.is_null() {
        return fail(Errno::NOSYS);
    }
    // SAFETY: the stream is open; one without a descriptor has the number -1.
    forget(unsafe { libc::fileno(stream) });
    // SAFETY: the function of this name in the C library has this type.
    let own: unsafe extern "C" fn(*mut libc::FILE) -> c_int = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    unsafe { own(stream) }
}

/// `int closedir(DIR *dirp)`.
///
/// # Safety
/// As closedir(3): the directory is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(directory: *mut libc::DIR) -> c_int {
    let own = CLOSEDIR.address();
    if own.is_null() {
        return fail(Errno::NOSYS);
    }
    if !directory.is_null() {
        // SAFETY: the directory is open.
        forget(unsafe { libc::dirfd(directory) });
    }
    // SAFETY: the function of this name in the C library has this type.
    let own: unsafe extern "C" fn(*mut libc::DIR) -> c_int = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    unsafe { own(directory) }
}
