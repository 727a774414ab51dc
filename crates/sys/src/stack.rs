//! A stack for the command that is large enough, whatever the limit of the process's own stack is.
//!
//! The limit (`RLIMIT_STACK`, `ulimit -s`) is not raised, since a command under study has it from iotomy.
//! Where it is too low, everything runs on memory of iotomy's own in its place, in the same thread.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// A stack size that suffices for the whole command.
const ENOUGH: usize = 2 << 20;

/// The size of the replacement.
const SIZE: usize = 8 << 20;

unsafe extern "C" {
    fn pthread_getattr_default_np(attributes: *mut libc::pthread_attr_t) -> libc::c_int;
}

/// Calls `work` on a stack that is large enough.
///
/// # Errors
/// When there is no memory for one; `work` has not been called.
pub fn with_enough_stack<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    match limit() {
        Some(limit) if limit < ENOUGH => on_own(work),
        _ => Ok(work()),
    }
}

/// The limit of the stack, or the C library's value if there is none. It was read when the process
/// started, so this makes no system call.
fn limit() -> Option<usize> {
    // SAFETY: `pthread_attr_t` is plain integers; the call below writes over it.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: `attributes` is room for the defaults.
    if unsafe { pthread_getattr_default_np(&raw mut attributes) } != 0 {
        return None;
    }
    let mut size = 0;
    // SAFETY: the attributes were just filled in, and `size` is room for a number.
    let error = unsafe { libc::pthread_attr_getstacksize(&raw const attributes, &raw mut size) };
    // SAFETY: as above; they are not used again.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    (error == 0).then_some(size)
}

thread_local! {
    /// The function that [`enter`] is to call: it can be given no argument of this size.
    static WORK: Cell<Option<*mut (dyn FnMut() + 'static)>> = const { Cell::new(None) };
}

extern "C" fn enter() {
    if let Some(work) = WORK.take() {
        // SAFETY: `switch` keeps the closure, lends it to nobody else, and waits for this.
        unsafe { (*work)() }
    }
}

/// Calls `work` on a stack of its own.
fn on_own<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut work = Some(work);
    let mut done = None;
    // A panic cannot unwind from one stack to another.
    switch(&mut || done = work.take().map(|work| catch_unwind(AssertUnwindSafe(work))))?;
    match done {
        Some(Ok(done)) => Ok(done),
        Some(Err(panic)) => resume_unwind(panic),
        None => Err(io::Error::other("the work was not done")),
    }
}

fn switch(work: &mut dyn FnMut()) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at a place of the kernel's choice.
    let memory = unsafe { libc::mmap(ptr::null_mut(), SIZE, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // An overflow ends in a page that cannot be touched.
    // SAFETY: the lowest page of the mapping, which nobody uses.
    unsafe { libc::mprotect(memory, 4096, libc::PROT_NONE) };
    // SAFETY: `ucontext_t` is plain integers and pointers; the call below writes over it.
    let mut there: libc::ucontext_t = unsafe { std::mem::zeroed() };
    let mut here = there;
    // SAFETY: `there` is room for a context.
    if unsafe { libc::getcontext(&raw mut there) } != 0 {
        return Err(io::Error::last_os_error());
    }
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = SIZE;
    there.uc_link = &raw mut here;
    // SAFETY: only the lifetime is another: the closure outlives the switch, which ends in this function.
    let work: *mut (dyn FnMut() + 'static) = unsafe { std::mem::transmute(ptr::from_mut(work)) };
    WORK.set(Some(work));
    // SAFETY: the context was filled in, its stack is the mapping, and `enter` takes no argument.
    unsafe { libc::makecontext(&raw mut there, enter, 0) };
    // SAFETY: both contexts stay where they are until `enter` has returned, which leads back to here.
    let switched = unsafe { libc::swapcontext(&raw mut here, &raw const there) };
    // SAFETY: nobody is on that stack any more.
    unsafe { libc::munmap(memory, SIZE) };
    if switched == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_another_stack_returns_or_panics() {
        fn deep(left: u32) -> u64 {
            let room = std::hint::black_box([u64::from(left); 128]);
            if left == 0 { room[0] } else { room[127] + deep(left - 1) }
        }
        // A megabyte and more.
        assert_eq!(on_own(|| deep(1_000)).unwrap(), 1_000 * 1_001 / 2);
        let caught = catch_unwind(|| on_own(|| panic!("expected")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"expected"));
        assert_eq!(with_enough_stack(|| 23).unwrap(), 23);
    }
}
