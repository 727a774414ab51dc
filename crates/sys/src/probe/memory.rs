//! Memory mapped for a trial, and the page cache's own account of a file.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use super::Refusal;

/// Absent from the C library's bindings: 6.5 and later.
const SYS_CACHESTAT: libc::c_long = 451;

/// Fresh private memory, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` of ordinary pages.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn ordinary(bytes: usize) -> Result<Self, Refusal> {
        Self::anonymous("mmap", bytes, 0)
    }

    /// Reserves `bytes`, a multiple of the huge page's size, of the huge pages set aside. They are
    /// not touched: in a control group with a smaller limit that would be a SIGBUS.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn huge(bytes: usize) -> Result<Self, Refusal> {
        Self::anonymous("mmap MAP_HUGETLB", bytes, libc::MAP_HUGETLB)
    }

    fn anonymous(call: &'static str, bytes: usize, flags: i32) -> Result<Self, Refusal> {
        // SAFETY: asks for fresh memory at an address the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(Refusal::last(call)),
        }
    }

    /// Requests huge pages for this memory.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn advise_huge(&self) -> Result<(), Refusal> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range is this mapping; the advice does not change what it holds.
        if unsafe { libc::madvise(start, self.bytes, libc::MADV_HUGEPAGE) } == 0 {
            Ok(())
        } else {
            Err(Refusal::last("madvise MADV_HUGEPAGE"))
        }
    }

    /// Writes one byte at the middle, so that the page there must exist.
    pub fn touch_middle(&mut self) {
        // SAFETY: the middle is inside the mapping, which is longer than nothing.
        let middle = unsafe { self.start.add(self.bytes / 2) };
        // SAFETY: the mapping is writable, and nobody else has its address.
        unsafe { middle.write_volatile(1) };
    }

    /// Where it begins, to find it in `/proc/self/smaps`.
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, of which no reference is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// How much of a file is in the page cache, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cached {
    /// All of it.
    pub pages: u64,
    /// The dirty part of it that is not being written back.
    pub dirty: u64,
    /// The part of it that is being written back.
    pub writeback: u64,
}

/// The pages of a file in the page cache, by `cachestat(2)`.
///
/// # Errors
/// The kernel's refusal.
pub fn cachestat(file: BorrowedFd<'_>) -> Result<Cached, Refusal> {
    // The kernel's `struct cachestat_range` (offset, length; 0 is to the end) and `struct
    // cachestat`: the pages cached, dirty, under writeback, and two of pages evicted.
    let range = [0u64; 2];
    let mut counts = [0u64; 5];
    // SAFETY: both arrays have the sizes of the kernel's structures and outlive the call.
    let got = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0)
    };
    match (got, counts) {
        (0, [pages, dirty, writeback, ..]) => Ok(Cached { pages, dirty, writeback }),
        _ => Err(Refusal::last("cachestat")),
    }
}
