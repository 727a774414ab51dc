//! The functions of sys/event.h.
//!
//! Pointers are the caller's word, as in `calls`. A queue is of one process: a child of `fork` has neither
//! the queue nor its descriptors, as on FreeBSD.

use std::ffi::{c_int, c_uint};
use std::mem::forget;
use std::sync::{Arc, Once};

use iotomy_ports::{Closes, Errno, Kevent, Kqueue};
use iotomy_sys::forks;

use crate::calls::{fail, limit};
use crate::opened::QUEUES;

/// `KQUEUE_CLOEXEC`.
const CLOSE_ON_EXEC: c_uint = 1;

/// `int kqueue(void)`.
#[unsafe(no_mangle)]
pub extern "C" fn kqueue() -> c_int {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Handlers of children run in this order: a queue is to know then that it is in a child.
        forks::depth();
        // SAFETY: the handler makes system calls and changes atomics only. It fails only without memory;
        // a child keeps descriptors then.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    // It would be of no use in another program.
    Kqueue::new(Closes::Reported).and_then(|queue| QUEUES.open(queue, true)).unwrap_or_else(fail)
}

/// `int kqueue1(int flags)`: the descriptor is always closed by `exec`.
#[unsafe(no_mangle)]
pub extern "C" fn kqueue1(_flags: c_int) -> c_int {
    kqueue()
}

/// `int kqueuex(unsigned int flags)`.
#[unsafe(no_mangle)]
pub extern "C" fn kqueuex(flags: c_uint) -> c_int {
    if flags & !CLOSE_ON_EXEC != 0 {
        return fail(Errno::INVAL);
    }
    kqueue()
}

/// A child's copies of queues are closed, and never dropped: other threads may have been changing them when
/// the process forked.
extern "C" fn in_child() {
    for fd in QUEUES.descriptors() {
        if let Some(queue) = QUEUES.known(fd) {
            forget(Arc::clone(&queue));
        }
        QUEUES.leave_alone(fd);
        // SAFETY: a plain number. It is the queue's, as all closes are told.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}

/// `int kevent(int kq, const struct kevent *changelist, int nchanges, struct kevent *eventlist, int nevents,
/// const struct timespec *timeout)`.
///
/// # Safety
/// The lists have so many elements, or there are 0; they may be one list. The timeout is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kevent(
    kq: c_int,
    changelist: *const Kevent,
    nchanges: c_int,
    eventlist: *mut Kevent,
    nevents: c_int,
    timeout: *const libc::timespec,
) -> c_int {
    let queue = match QUEUES.find(kq) {
        Ok(queue) => queue,
        Err(Errno::BADFD) => return fail(Errno::BADF),
        Err(error) => return fail(error),
    };
    let (Ok(count), Ok(room)) = (usize::try_from(nchanges), usize::try_from(nevents)) else {
        return fail(Errno::INVAL);
    };
    if count > 0 && changelist.is_null() || room > 0 && eventlist.is_null() {
        return fail(Errno::FAULT);
    }
    // Each is read before anything is written over it.
    let changes = (0..count).map(|index| {
        // SAFETY: the list has so many elements.
        let change = unsafe { changelist.add(index) };
        // SAFETY: as above.
        unsafe { change.read() }
    });
    let mut place = eventlist;
    let mut put = |event| {
        // SAFETY: no more than there is room for are put.
        unsafe { place.write(event) };
        // SAFETY: at most one beyond the last.
        place = unsafe { place.add(1) };
    };
    // Without changes, the lock is taken once.
    let applied = if count > 0 { queue.apply(changes, room, &mut put) } else { Ok(0) };
    let done = applied.and_then(|reported| {
        if reported > 0 {
            return Ok(reported);
        }
        // SAFETY: the caller's word.
        let is_whole =
            unsafe { timeout.as_ref() }.is_some_and(|time| time.tv_nsec == 1_000_000_000);
        if is_whole {
            return Err(Errno::INVAL);
        }
        // SAFETY: the caller's word.
        queue.wait(room, unsafe { limit(timeout) }?, put)
    });
    match done {
        Ok(got) => got as c_int,
        Err(error) => fail(error),
    }
}
