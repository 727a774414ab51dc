//! Memory that a process shares with those it forks: words that each side may change at any time.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Shared words, zero at first, for as long as any process has them mapped.
#[derive(Debug)]
pub struct Board {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: atomic words may be changed by any thread at any time.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

impl Board {
    /// A board of `words`.
    ///
    /// # Errors
    /// As mmap(2): `ENOMEM`.
    pub fn new(words: usize) -> io::Result<Self> {
        let words = words.max(1);
        let bytes = words.checked_mul(size_of::<u64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: asks for fresh memory at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: that many words, zeroed by the kernel and aligned to a page, mapped for as long as
        // `self` lives; whoever shares them changes them as atomics too.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and not used afterwards.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}
