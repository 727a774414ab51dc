//! Memory aligned to pages, as `O_DIRECT` and zero-copy calls want it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::memory;

/// The alignment, in bytes: a page, which suffices for every device.
pub const ALIGNMENT: usize = 4096;

/// A buffer that begins on a page.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone, like a boxed slice.
unsafe impl Send for Aligned {}

// SAFETY: shared access only reads.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// Zeroes; at least one byte. For sizes that no process goes without: where they are refused it
    /// ends, as [`crate::memory`] has it.
    ///
    /// # Panics
    /// When `bytes` is more than half the address space.
    pub fn new(bytes: usize) -> Self {
        let layout = layout(bytes).expect("a buffer that fits");
        Self::allocate(layout).unwrap_or_else(|| memory::refused(bytes))
    }

    /// The same, of a requested size.
    ///
    /// # Errors
    /// `ENOMEM`: no memory is available (`ulimit -v`), or no address.
    pub fn try_new(bytes: usize) -> io::Result<Self> {
        let refused = || io::Error::from_raw_os_error(libc::ENOMEM);
        layout(bytes).and_then(Self::allocate).ok_or_else(refused)
    }

    fn allocate(layout: Layout) -> Option<Self> {
        // SAFETY: the layout's size is not 0.
        let start = unsafe { System.alloc_zeroed(layout) };
        Some(Self { start: NonNull::new(start)?, layout })
    }
}

/// Of at least one byte, on a page; `None` where that is more than half the address space.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` leads to that many initialised bytes owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and not used afterwards.
        unsafe { System.dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_on_a_page_and_holds_what_was_asked_for() {
        for bytes in [0, 1, 4095, 1 << 20] {
            let buffer = Aligned::try_new(bytes).unwrap();
            assert_eq!(Aligned::new(bytes).len(), buffer.len());
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(buffer.len(), bytes.max(1));
            assert!(buffer.iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn memory_that_is_not_to_be_had_is_an_error() {
        // More than any address space has, and more than a layout can name.
        for bytes in [1 << 60, usize::MAX] {
            let error = Aligned::try_new(bytes).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
        }
    }
}
