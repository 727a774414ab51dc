//! `/dev/poll`: the functions that open it, write to it and ask it.
//!
//! They are the C library's for every other file. What `open` gives for `/dev/poll` is the descriptor of
//! a [`PollSet`].

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::transmute;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use iotomy_ports::{Errno, PollEntry, PollSet};
use iotomy_sys::descriptor_table::Entry;
use rustix::process::{Resource, getrlimit};

use crate::calls::fail;
use crate::opened::{Opened, SETS};
use crate::replaced::{
    IOCTL, OPEN, OPEN_2, OPEN64, OPEN64_2, OPENAT, OPENAT64, PWRITE, PWRITE64, Replaced, WRITE,
};

/// The requests of `ioctl`, as in sys/devpoll.h.
const DP_POLL: c_ulong = 0xD001;
const DP_ISPOLLED: c_ulong = 0xD002;
const DP_PPOLL: c_ulong = 0xD003;

/// `struct dvpoll`.
#[repr(C)]
struct Poll {
    entries: *mut PollEntry,
    count: libc::nfds_t,
    timeout: c_int,
    mask: *const libc::sigset_t,
}

/// The descriptor of a new set, if this is the path of `/dev/poll`.
///
/// # Safety
/// The path is a string.
unsafe fn open_set(path: *const c_char, flags: c_int) -> Option<c_int> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's word.
    let path = unsafe { CStr::from_ptr(path) };
    if path != c"/dev/poll" {
        return None;
    }
    look_at_limit();
    let opened = PollSet::new().and_then(|set| SETS.open(set, flags & libc::O_CLOEXEC != 0));
    Some(opened.unwrap_or_else(fail))
}

/// Defines functions that open a file by its path and flags, with or without a mode.
macro_rules! opens {
    ($($name:ident, $own:ident ( $($before:ident : $type:ty),* ; $($mode:ident)? );)*) => {$(
        /// As open(2). The mode is passed on whether the caller gave one or not.
        ///
        /// # Safety
        /// As open(2): the path is a string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $type,)*
            path: *const c_char,
            flags: c_int,
            $($mode: libc::mode_t,)?
        ) -> c_int {
            // SAFETY: the caller's word.
            if let Some(fd) = unsafe { open_set(path, flags) } {
                return fd;
            }
            let own = $own.address();
            if own.is_null() {
                return fail(Errno::NOSYS);
            }
            type Own = unsafe extern "C" fn(
                $($type,)*
                *const c_char,
                c_int,
                $(opens!(@ $mode),)?
            ) -> c_int;
            // SAFETY: the function of this name in the C library has this type; a mode that it does
            // not expect is not looked at.
            let own: Own = unsafe { transmute(own) };
            // SAFETY: the caller's word.
            unsafe { own($($before,)* path, flags, $($mode,)?) }
        }
    )*};
    (@ $mode:ident) => { libc::mode_t };
}

opens! {
    open, OPEN(; mode);
    open64, OPEN64(; mode);
    openat, OPENAT(directory: c_int; mode);
    openat64, OPENAT64(directory: c_int; mode);
    __open_2, OPEN_2(;);
    __open64_2, OPEN64_2(;);
}

/// A set that is used by a duplicate of its descriptor for the first time: the C library's function has
/// failed as it does for a descriptor that is none of its own.
fn duplicate(fd: c_int) -> Option<Entry<'static, Arc<Opened<PollSet>>>> {
    // SAFETY: takes no arguments and cannot fail.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    let error = unsafe { errno.read() };
    if !SETS.is_used() || ![libc::EINVAL, libc::ENOTTY, libc::ESPIPE].contains(&error) {
        return None;
    }
    let found = SETS.find(fd).ok();
    // SAFETY: the calling thread's own.
    unsafe { errno.write(error) };
    found
}

/// Writes entries to a set.
///
/// # Safety
/// The buffer has that many bytes.
unsafe fn write_entries(set: &PollSet, buffer: *const c_void, bytes: usize) -> isize {
    let (count, rest) = (bytes / size_of::<PollEntry>(), bytes % size_of::<PollEntry>());
    if rest != 0 || is_too_many(count) {
        return fail(Errno::INVAL) as isize;
    }
    if count == 0 {
        return 0;
    }
    if buffer.is_null() || !buffer.cast::<PollEntry>().is_aligned() {
        return fail(Errno::FAULT) as isize;
    }
    // SAFETY: the caller's word; the buffer is aligned.
    let entries = unsafe { slice::from_raw_parts(buffer.cast(), count) };
    match set.write(entries) {
        Ok(()) => bytes.cast_signed(),
        Err(error) => fail(error) as isize,
    }
}

/// The highest limit of descriptors that the process had when it used a set: it may lower the limit and keep
/// the room that it has.
static HIGHEST_LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Takes note of the limit of descriptors.
fn look_at_limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| limit as usize);
    HIGHEST_LIMIT.fetch_max(limit, Ordering::Relaxed).max(limit)
}

/// Whether so many entries are more than the highest limit.
fn is_too_many(count: usize) -> bool {
    count > HIGHEST_LIMIT.load(Ordering::Relaxed) && count > look_at_limit()
}

/// `ssize_t write(int fd, const void *buf, size_t count)`.
///
/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, bytes: usize) -> isize {
    if let Some(set) = SETS.known(fd) {
        // SAFETY: the caller's word.
        return unsafe { write_entries(&set, buffer, bytes) };
    }
    let own = WRITE.address();
    if own.is_null() {
        return fail(Errno::NOSYS) as isize;
    }
    // SAFETY: the function of this name in the C library has this type.
    let own: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    let written = unsafe { own(fd, buffer, bytes) };
    match written {
        // SAFETY: the caller's word.
        -1 => duplicate(fd).map_or(-1, |set| unsafe { write_entries(&set, buffer, bytes) }),
        written => written,
    }
}

/// # Safety
/// As pwrite(2).
unsafe fn write_at(
    own: &Replaced,
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    offset: i64,
) -> isize {
    if let Some(set) = SETS.known(fd) {
        // SAFETY: the caller's word.
        return unsafe { write_entries(&set, buffer, bytes) };
    }
    let own = own.address();
    if own.is_null() {
        return fail(Errno::NOSYS) as isize;
    }
    type Own = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
    // SAFETY: the function of this name in the C library has this type.
    let own: Own = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    let written = unsafe { own(fd, buffer, bytes, offset) };
    match written {
        // SAFETY: the caller's word.
        -1 => duplicate(fd).map_or(-1, |set| unsafe { write_entries(&set, buffer, bytes) }),
        written => written,
    }
}

/// `ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)`.
///
/// # Safety
/// As pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, buffer: *const c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller's word.
    unsafe { write_at(&PWRITE, fd, buffer, bytes, at) }
}

/// `ssize_t pwrite64(int fd, const void *buf, size_t count, off64_t offset)`.
///
/// # Safety
/// As pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    at: i64,
) -> isize {
    // SAFETY: the caller's word.
    unsafe { write_at(&PWRITE64, fd, buffer, bytes, at) }
}

/// `int ioctl(int fd, unsigned long request, ...)`.
///
/// # Safety
/// As ioctl(2); of `/dev/poll`, the argument points to a `struct dvpoll` or a `struct pollfd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if let Some(set) = SETS.known(fd) {
        // SAFETY: the caller's word.
        return unsafe { ask(&set, request, argument) };
    }
    let own = IOCTL.address();
    if own.is_null() {
        return fail(Errno::NOSYS);
    }
    // SAFETY: the function of this name in the C library takes these registers.
    let own: unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    let answer = unsafe { own(fd, request, argument) };
    match answer {
        // SAFETY: the caller's word.
        -1 => duplicate(fd).map_or(-1, |set| unsafe { ask(&set, request, argument) }),
        answer => answer,
    }
}

/// # Safety
/// The argument is null or what the request says.
unsafe fn ask(set: &PollSet, request: c_ulong, argument: *mut c_void) -> c_int {
    let done = match request {
        // SAFETY: the caller's word.
        DP_POLL => unsafe { poll(set, argument.cast(), false) },
        // SAFETY: the caller's word.
        DP_PPOLL => unsafe { poll(set, argument.cast(), true) },
        // SAFETY: the caller's word.
        DP_ISPOLLED => unsafe { is_polled(set, argument.cast()) },
        _ => Err(Errno::INVAL),
    };
    done.unwrap_or_else(fail)
}

/// # Safety
/// The pointer is null or valid, and there is room for the entries that it tells of.
unsafe fn poll(set: &PollSet, request: *const Poll, has_mask: bool) -> Result<c_int, Errno> {
    if request.is_null() {
        return Err(Errno::FAULT);
    }
    // The mask is there only if the caller says so: the fields are read one by one.
    // SAFETY: the caller's word.
    let entries = unsafe { &raw const (*request).entries };
    // SAFETY: as above.
    let count = unsafe { &raw const (*request).count };
    // SAFETY: as above.
    let timeout = unsafe { &raw const (*request).timeout };
    // SAFETY: as above.
    let entries = unsafe { entries.read() };
    // SAFETY: as above.
    let count = unsafe { count.read() } as usize;
    // SAFETY: as above.
    let timeout = unsafe { timeout.read() };
    // As many as the limit too, which the page excludes: libevent asks for that until 2.1.12.
    if is_too_many(count) {
        return Err(Errno::INVAL);
    }
    if entries.is_null() && count > 0 {
        return Err(Errno::FAULT);
    }
    let mask = if has_mask {
        // SAFETY: the caller's word.
        let mask = unsafe { &raw const (*request).mask };
        // SAFETY: as above.
        let mask = unsafe { mask.read() };
        // SAFETY: null, or a set of signals, whose first 64 bits are the kernel's.
        (!mask.is_null()).then(|| unsafe { mask.cast::<u64>().read() })
    } else {
        None
    };
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let mut place = entries;
    let put = |entry| {
        // SAFETY: no more than `count` entries are put, and there is room for them.
        unsafe { place.write(entry) };
        // SAFETY: at most one beyond the last.
        place = unsafe { place.add(1) };
    };
    Ok(set.poll(count, timeout, mask, put)? as c_int)
}

/// # Safety
/// The pointer is null or valid.
unsafe fn is_polled(set: &PollSet, entry: *mut PollEntry) -> Result<c_int, Errno> {
    // SAFETY: the caller's word.
    let entry = unsafe { entry.as_mut() }.ok_or(Errno::FAULT)?;
    let Some(events) = set.wanted(entry.fd)? else { return Ok(0) };
    (entry.events, entry.revents) = (0, events);
    Ok(1)
}
