//! The C library's own functions behind those that this library replaces.
//!
//! Those that handlers of signals may call are looked up when the library is loaded: the look-up itself
//! must not be made in a handler.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{closing, dev_poll};

/// A function of the C library, looked up when it is first needed.
pub(crate) struct Replaced {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Replaced {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if the program has no other function of this name.
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

extern "C" fn look_up() {
    use dev_poll::{IOCTL, OPEN, OPEN64, OPENAT, OPENAT64, PWRITE, PWRITE64, WRITE};
    let opens = [&OPEN, &OPEN64, &OPENAT, &OPENAT64];
    let others = [&WRITE, &PWRITE, &PWRITE64, &IOCTL, &closing::FCLOSE, &closing::CLOSEDIR];
    for replaced in opens.into_iter().chain(others) {
        replaced.address();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = look_up;
