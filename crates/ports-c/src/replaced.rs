//! The C library's own functions behind those that this library replaces.
//!
//! Those that handlers of signals may call are looked up when the library is loaded: the look-up itself
//! must not be made in a handler.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

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

pub(crate) static OPEN: Replaced = Replaced::new(c"open");
pub(crate) static OPEN64: Replaced = Replaced::new(c"open64");
pub(crate) static OPENAT: Replaced = Replaced::new(c"openat");
pub(crate) static OPENAT64: Replaced = Replaced::new(c"openat64");
pub(crate) static OPEN_2: Replaced = Replaced::new(c"__open_2");
pub(crate) static OPEN64_2: Replaced = Replaced::new(c"__open64_2");
pub(crate) static WRITE: Replaced = Replaced::new(c"write");
pub(crate) static PWRITE: Replaced = Replaced::new(c"pwrite");
pub(crate) static PWRITE64: Replaced = Replaced::new(c"pwrite64");
pub(crate) static IOCTL: Replaced = Replaced::new(c"ioctl");
pub(crate) static FCLOSE: Replaced = Replaced::new(c"fclose");
pub(crate) static CLOSEDIR: Replaced = Replaced::new(c"closedir");

extern "C" fn look_up() {
    let opens = [&OPEN, &OPEN64, &OPENAT, &OPENAT64];
    let others = [&WRITE, &PWRITE, &PWRITE64, &IOCTL, &FCLOSE, &CLOSEDIR];
    for replaced in opens.into_iter().chain(others) {
        replaced.address();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = look_up;
