//! The allocator of the command: the system's, but refused memory ends the process with a message
//! and the exit status for "could not be run", and not by SIGABRT with a backtrace.
//!
//! Code that can do with less memory calls the system's allocator itself, as [`crate::buffer`]
//! does.

use std::alloc::{GlobalAlloc, Layout, System};

/// Something could not be run.
const COULD_NOT_RUN: libc::c_int = 2;

/// The system's allocator, which ends the process where it has nothing to give.
#[derive(Debug, Clone, Copy)]
pub struct Memory;

// SAFETY: every method is the system allocator's, or does not return.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to what the trait asks for.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(start, layout, size) }, size)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Lets all threads allocate from one arena. A thread's own arena reserves 64 MiB of addresses;
/// under `ulimit -v` that is refused, and the C library then allocates for a new thread page by
/// page, and ends the process by SIGABRT when that is refused as well. To be called at the start of
/// the command.
pub fn share_one_arena() {
    // SAFETY: takes plain integers; no other thread runs yet.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

#[inline]
fn given(start: *mut u8, size: usize) -> *mut u8 {
    if start.is_null() {
        refused(size)
    }
    start
}

/// Reports that memory was refused, and ends the process. Allocates nothing.
#[cold]
#[inline(never)]
pub(crate) fn refused(size: usize) -> ! {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = size;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    for text in [
        b"iotomy: cannot get ".as_slice(),
        &digits[at..],
        b" bytes of memory: the system refused them; raise the limit (ulimit -v), or free memory\n",
    ] {
        // SAFETY: the slice's pointer and length describe readable memory.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(COULD_NOT_RUN) }
}
