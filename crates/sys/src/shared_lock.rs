//! A lock that a process shares with those it forks, and that outlives whoever holds it.
//!
//! The one invariant: a process that is killed with the lock held leaves it to the next one
//! (`PTHREAD_MUTEX_ROBUST`), which finds what the lock guards as the dead process left it.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A lock in memory that is shared with forked processes.
#[derive(Debug)]
pub struct SharedLock {
    mutex: NonNull<libc::pthread_mutex_t>,
}

// SAFETY: a process-shared mutex may be used by any thread at any time.
unsafe impl Send for SharedLock {}
// SAFETY: as above.
unsafe impl Sync for SharedLock {}

/// The lock, held until this is dropped by the thread that took it.
#[derive(Debug)]
pub struct SharedGuard<'l> {
    lock: &'l SharedLock,
    is_inherited: bool,
    _of_this_thread: PhantomData<*const ()>,
}

const LENGTH: usize = size_of::<libc::pthread_mutex_t>();

impl SharedLock {
    /// A lock that nobody holds.
    ///
    /// # Errors
    /// As mmap(2): `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let mutex: NonNull<libc::pthread_mutex_t> =
            crate::mapping::map(LENGTH, protection, flags, -1, 0)?.cast();
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let of = attributes.as_mut_ptr();
        // SAFETY: writes the attributes, whose room this is.
        unsafe { libc::pthread_mutexattr_init(of) };
        // SAFETY: the attributes are initialised.
        unsafe { libc::pthread_mutexattr_setpshared(of, libc::PTHREAD_PROCESS_SHARED) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutexattr_setrobust(of, libc::PTHREAD_MUTEX_ROBUST) };
        // SAFETY: the mapping is large enough, aligned to a page and known to nobody yet.
        let code = unsafe { libc::pthread_mutex_init(mutex.as_ptr(), of) };
        // SAFETY: the attributes are initialised and not used afterwards.
        unsafe { libc::pthread_mutexattr_destroy(of) };
        let lock = Self { mutex };
        if code == 0 { Ok(lock) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> SharedGuard<'_> {
        // SAFETY: initialised by `new`, and mapped for as long as `self` lives.
        let code = unsafe { libc::pthread_mutex_lock(self.mutex.as_ptr()) };
        let is_inherited = code == libc::EOWNERDEAD;
        if is_inherited {
            // SAFETY: this thread has just got the lock of a dead one.
            unsafe { libc::pthread_mutex_consistent(self.mutex.as_ptr()) };
        }
        SharedGuard { lock: self, is_inherited, _of_this_thread: PhantomData }
    }
}

impl SharedGuard<'_> {
    /// Whether the one who held the lock before was killed with it.
    #[inline]
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.is_inherited
    }
}

impl Drop for SharedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock, as a guard cannot leave its thread.
        unsafe { libc::pthread_mutex_unlock(self.lock.mutex.as_ptr()) };
    }
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        // Not destroyed: other processes may use it on.
        // SAFETY: mapped by `new` with this length, and not used by this process afterwards.
        unsafe { libc::munmap(self.mutex.as_ptr().cast(), LENGTH) };
    }
}

/// Forks a child that takes the lock and is killed with it, for tests.
///
/// # Errors
/// As fork(2).
#[cfg(test)]
fn die_with(lock: &SharedLock) -> io::Result<()> {
    // SAFETY: the child makes only calls that are safe after a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            std::mem::forget(lock.lock());
            // SAFETY: plain integers.
            unsafe { libc::kill(std::process::id().cast_signed(), libc::SIGKILL) };
            loop {
                std::hint::spin_loop();
            }
        }
        child => {
            // SAFETY: a null status is not written.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_outlives_the_process_that_was_killed_with_it() {
        let lock = SharedLock::new().unwrap();
        assert!(!lock.lock().is_inherited());
        die_with(&lock).unwrap();
        assert!(lock.lock().is_inherited());
        assert!(!lock.lock().is_inherited());
    }
}
