//! Memory mapped for the kernel's own use: windows of files, and pages to be given to pipes.
//!
//! The one invariant: a window of a file is never touched from here, only handed to calls. A page
//! that the file has lost since is an `EFAULT` of the call then, and no `SIGBUS` of the process.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

pub(crate) fn map(
    length: usize,
    protection: libc::c_int,
    flags: libc::c_int,
    fd: libc::c_int,
    offset: u64,
) -> io::Result<NonNull<libc::c_void>> {
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: asks for memory at an address of the kernel's choice, so nothing is mapped over.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// A window of a file, to be passed to calls and never read.
#[derive(Debug)]
pub struct Window {
    start: NonNull<libc::c_void>,
    length: usize,
}

impl Window {
    /// Maps `length` bytes of a file from `offset`, a multiple of the page size. With `populate`,
    /// its pages are mapped at once.
    ///
    /// # Errors
    /// As mmap(2): `ENODEV` for files that cannot be mapped.
    pub fn map(fd: BorrowedFd<'_>, offset: u64, length: usize, populate: bool) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | if populate { libc::MAP_POPULATE } else { 0 };
        let start = map(length, libc::PROT_READ, flags, fd.as_raw_fd(), offset)?;
        Ok(Self { start, length })
    }

    /// Requests huge pages; without effect where the file system has none.
    pub fn advise_huge_pages(&self) {
        // SAFETY: the range is this window, which no reference leads into.
        unsafe { libc::madvise(self.start.as_ptr(), self.length, libc::MADV_HUGEPAGE) };
    }

    /// How many of its pages are in the page cache, by `mincore(2)`, which brings none into it.
    ///
    /// # Errors
    /// As mincore(2).
    pub fn resident_pages(&self) -> io::Result<usize> {
        // SAFETY: takes a plain integer.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut pages = vec![0u8; self.length.div_ceil(page)];
        // SAFETY: the range is this mapping, and `pages` has a byte for each of its pages.
        match unsafe { libc::mincore(self.start.as_ptr(), self.length, pages.as_mut_ptr()) } {
            0 => Ok(pages.iter().filter(|page| **page & 1 == 1).count()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Faults a part of the window in, as reading from it would, by `MADV_POPULATE_READ`.
    ///
    /// # Errors
    /// As madvise(2): `EINVAL` before Linux 5.14, `EFAULT` where the file has lost the pages.
    ///
    /// # Panics
    /// When the part is not inside the window.
    pub fn fault_in(&self, part: Range<usize>) -> io::Result<()> {
        assert!(part.start <= part.end && part.end <= self.length, "a part of the window");
        // SAFETY: the offset is inside the mapping, by the line above.
        let from = unsafe { self.start.as_ptr().byte_add(part.start) };
        // SAFETY: maps pages of this window, which no reference leads into.
        match unsafe { libc::madvise(from, part.len(), libc::MADV_POPULATE_READ) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `write(2)` from a part of the window.
    ///
    /// # Errors
    /// As write(2): `EFAULT` when the file no longer has the first page.
    ///
    /// # Panics
    /// When the part is not inside the window.
    pub fn write_to(&self, fd: BorrowedFd<'_>, part: Range<usize>) -> io::Result<usize> {
        assert!(part.start <= part.end && part.end <= self.length, "a part of the window");
        // SAFETY: the offset is inside the mapping, by the line above.
        let from = unsafe { self.start.as_ptr().byte_add(part.start) };
        // SAFETY: the kernel reads a part of the mapping, checking each page itself.
        let put = unsafe { libc::write(fd.as_raw_fd(), from, part.len()) };
        usize::try_from(put).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length, and not used afterwards.
        unsafe { libc::munmap(self.start.as_ptr(), self.length) };
    }
}

/// Fresh pages of this process alone, which a pipe can be given references to.
///
/// A page in a pipe lives as long as the pipe needs it, also without the mapping. So dropping is
/// always sound and correct; writing again is sound, but shows through.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<libc::c_void>,
    length: usize,
}

// SAFETY: the mapping is owned alone, like a boxed slice.
unsafe impl Send for Pages {}

impl Pages {
    /// Zeroed pages for at least one byte.
    ///
    /// # Errors
    /// As mmap(2): `ENOMEM`.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let length = bytes.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let start = map(length, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        Ok(Self { start, length })
    }

    /// Requests huge pages for this memory or, with `false`, none.
    ///
    /// # Errors
    /// As madvise(2): `EINVAL` on a kernel without huge pages.
    pub fn advise_huge_pages(&self, huge: bool) -> io::Result<()> {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is this mapping; the advice does not change what it holds.
        match unsafe { libc::madvise(self.start.as_ptr(), self.length, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `vmsplice(2)`: gives a pipe references to the pages that hold a part of these bytes.
    ///
    /// # Errors
    /// As vmsplice(2): `EBADF` when `pipe` is none.
    pub fn splice_into(&self, pipe: BorrowedFd<'_>, part: Range<usize>) -> io::Result<usize> {
        let bytes = &self[part];
        let vector =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: one vector of bytes that are ours to read; without SPLICE_F_GIFT they stay ours.
        let put = unsafe { libc::vmsplice(pipe.as_raw_fd(), &raw const vector, 1, 0) };
        usize::try_from(put).map_err(|_| io::Error::last_os_error())
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: that many readable bytes, initialised by the kernel and owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and not used afterwards.
        unsafe { libc::munmap(self.start.as_ptr(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_window_whose_file_has_shrunk_is_an_error_and_no_signal() {
        let path = std::env::temp_dir().join(format!("iotomy-window-{}", std::process::id()));
        let mut file = std::fs::File::create_new(&path).unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let readable = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let window = Window::map(readable.as_fd(), 0, 8192, false).unwrap();
        let (mut out, into) = std::io::pipe().unwrap();
        assert_eq!(window.write_to(into.as_fd(), 4096..4098).unwrap(), 2);
        file.set_len(4096).unwrap();
        let error = window.write_to(into.as_fd(), 4096..8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        let mut two = [0; 2];
        out.read_exact(&mut two).unwrap();
        assert_eq!(two, [7, 7]);
    }

    #[test]
    fn pages_given_to_a_pipe_outlive_their_mapping() {
        let (mut out, into) = std::io::pipe().unwrap();
        let mut pages = Pages::new(5000).unwrap();
        pages[4095..4098].copy_from_slice(b"abc");
        assert_eq!(pages.splice_into(into.as_fd(), 4095..4098).unwrap(), 3);
        drop(pages);
        let mut three = [0; 3];
        out.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"abc");
    }
}
