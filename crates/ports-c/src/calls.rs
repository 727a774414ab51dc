//! The functions of port.h.
//!
//! Pointers are the caller's word: one that is neither null nor valid ends the process, as in other
//! functions of the C library, where a kernel would have answered `EFAULT`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use iotomy_ports::{Errno, Event, FileChanges, FileObject, Shortfall};
use rustix::event::PollFlags;

use crate::opened::{PORTS, create_port};

/// The sources that can be associated.
const SOURCE_FD: c_int = 4;
const SOURCE_FILE: c_int = 7;

const ALERT_SET: c_int = 1;
const ALERT_UPDATE: c_int = 2;

/// `file_obj_t`.
#[repr(C)]
struct CFileObject {
    accessed: libc::timespec,
    modified: libc::timespec,
    changed: libc::timespec,
    pad: [usize; 3],
    name: *const c_char,
}

/// -1 with `errno` set, or 0.
pub(crate) fn status(done: Result<(), Errno>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

pub(crate) fn fail(error: Errno) -> c_int {
    // SAFETY: takes no arguments and cannot fail.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    unsafe { errno.write(error.raw_os_error()) };
    -1
}

/// `int port_create(void)`.
#[unsafe(no_mangle)]
pub extern "C" fn port_create() -> c_int {
    create_port().unwrap_or_else(fail)
}

/// `int port_associate(int port, int source, uintptr_t object, int events, void *user)`.
///
/// # Safety
/// With `PORT_SOURCE_FILE`, the object points to a `file_obj_t`, whose name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn port_associate(
    port: c_int,
    source: c_int,
    object: usize,
    events: c_int,
    user: *mut c_void,
) -> c_int {
    let opened = match PORTS.find(port) {
        Ok(opened) => opened,
        Err(error) => return fail(error),
    };
    status(match source {
        SOURCE_FD => c_int::try_from(object).map_err(|_| Errno::BADFD).and_then(|fd| {
            let events = PollFlags::from_bits_retain(events as u16);
            opened.associate(fd, events, user.addr())
        }),
        SOURCE_FILE => {
            let file = std::ptr::with_exposed_provenance::<CFileObject>(object);
            // SAFETY: null, or a `file_obj_t` of the caller's.
            let file = unsafe { file.as_ref() }.filter(|file| !file.name.is_null());
            let changes = FileChanges::from_bits(events.cast_unsigned());
            match (file, changes) {
                (None, _) => Err(Errno::FAULT),
                (_, None) => Err(Errno::INVAL),
                (Some(file), Some(changes)) => {
                    // SAFETY: a string of the caller's.
                    let name = unsafe { CStr::from_ptr(file.name) };
                    let file = FileObject {
                        path: Path::new(OsStr::from_bytes(name.to_bytes())),
                        accessed: (file.accessed.tv_sec, file.accessed.tv_nsec),
                        modified: (file.modified.tv_sec, file.modified.tv_nsec),
                        changed: (file.changed.tv_sec, file.changed.tv_nsec),
                    };
                    opened.associate_file(object, file, changes, user.addr())
                }
            }
        }
        _ => Err(Errno::INVAL),
    })
}

/// `int port_dissociate(int port, int source, uintptr_t object)`.
#[unsafe(no_mangle)]
pub extern "C" fn port_dissociate(port: c_int, source: c_int, object: usize) -> c_int {
    status(PORTS.find(port).and_then(|opened| match source {
        SOURCE_FD => {
            let fd = c_int::try_from(object).map_err(|_| Errno::BADFD)?;
            opened.dissociate(fd)
        }
        SOURCE_FILE => opened.dissociate_file(object),
        _ => Err(Errno::INVAL),
    }))
}

/// `int port_send(int port, int events, void *user)`.
#[unsafe(no_mangle)]
pub extern "C" fn port_send(port: c_int, events: c_int, user: *mut c_void) -> c_int {
    status(PORTS.find(port).and_then(|opened| opened.send(events, user.addr())))
}

/// `int port_sendn(int ports[], int errors[], uint_t nent, int events, void *user)`.
///
/// # Safety
/// Both arrays have `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn port_sendn(
    ports: *const c_int,
    errors: *mut c_int,
    count: c_uint,
    events: c_int,
    user: *mut c_void,
) -> c_int {
    if count == 0 {
        return fail(Errno::INVAL);
    }
    if ports.is_null() || errors.is_null() {
        return fail(Errno::FAULT);
    }
    let (mut sent, mut has_failed) = (0, false);
    for index in 0..count as usize {
        // SAFETY: the array has `count` elements.
        let port = unsafe { ports.add(index) };
        // SAFETY: one of them.
        let port = unsafe { port.read() };
        let error = match PORTS.find(port).and_then(|opened| opened.send(events, user.addr())) {
            Ok(()) => {
                sent += 1;
                0
            }
            Err(error) => error.raw_os_error(),
        };
        if error != 0 && !has_failed {
            has_failed = true;
            // The array is filled in only if an event was not sent, and then all of it.
            // SAFETY: the array has `count` elements, of which these are fewer.
            unsafe { errors.write_bytes(0, index) };
        }
        if has_failed {
            // SAFETY: the array has `count` elements.
            let place = unsafe { errors.add(index) };
            // SAFETY: one of them.
            unsafe { place.write(error) };
        }
    }
    sent
}

/// `int port_get(int port, port_event_t *pe, const timespec_t *timeout)`.
///
/// # Safety
/// There is room for an event, and the timeout is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn port_get(
    port: c_int,
    event: *mut Event,
    timeout: *const libc::timespec,
) -> c_int {
    status(PORTS.find(port).and_then(|opened| {
        if event.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the caller's word.
        let timeout = unsafe { limit(timeout) }?;
        let got = opened.get(timeout)?;
        // SAFETY: there is room for an event.
        unsafe { event.write(got) };
        Ok(())
    }))
}

/// `int port_getn(int port, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout)`.
///
/// # Safety
/// There is room for `max` events, `nget` is null or valid, and so is the timeout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn port_getn(
    port: c_int,
    list: *mut Event,
    max: c_uint,
    nget: *mut c_uint,
    timeout: *const libc::timespec,
) -> c_int {
    let opened = match PORTS.find(port) {
        Ok(opened) => opened,
        Err(error) => return fail(error),
    };
    // SAFETY: null, or a number of the caller's.
    let Some(nget) = (unsafe { nget.as_mut() }) else { return fail(Errno::INVAL) };
    if max == 0 {
        *nget = c_uint::try_from(opened.queued()).unwrap_or(c_uint::MAX);
        return 0;
    }
    if list.is_null() || *nget > max {
        return fail(Errno::INVAL);
    }
    // SAFETY: the caller's word.
    let timeout = match unsafe { limit(timeout) } {
        Ok(timeout) => timeout,
        Err(error) => return fail(error),
    };
    let mut place = list;
    let put = |event| {
        // SAFETY: no more than `max` events are put, and there is room for them.
        unsafe { place.write(event) };
        // SAFETY: at most one beyond the last.
        place = unsafe { place.add(1) };
    };
    match opened.get_each(max as usize, *nget as usize, timeout, put) {
        Ok(got) => {
            *nget = got as c_uint;
            0
        }
        Err(Shortfall { errno, retrieved }) => {
            *nget = retrieved as c_uint;
            fail(errno)
        }
    }
}

/// The timeout of a call, None for no end.
///
/// # Safety
/// The pointer is null or valid.
pub(crate) unsafe fn limit(timeout: *const libc::timespec) -> Result<Option<Duration>, Errno> {
    // SAFETY: the caller's word.
    let Some(timeout) = (unsafe { timeout.as_ref() }) else { return Ok(None) };
    let seconds = u64::try_from(timeout.tv_sec).map_err(|_| Errno::INVAL)?;
    let rest = u64::try_from(timeout.tv_nsec).map_err(|_| Errno::INVAL)?;
    if rest > 1_000_000_000 {
        return Err(Errno::INVAL);
    }
    Ok(Some(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(rest))))
}

/// `int port_alert(int port, int flags, int events, void *user)`.
#[unsafe(no_mangle)]
pub extern "C" fn port_alert(port: c_int, flags: c_int, events: c_int, user: *mut c_void) -> c_int {
    let both = ALERT_SET | ALERT_UPDATE;
    status(PORTS.find(port).and_then(|opened| match (flags & both, events) {
        (flags, _) if flags == both => Err(Errno::INVAL),
        (_, 0) => {
            opened.end_alert();
            Ok(())
        }
        (ALERT_UPDATE, events) => opened.alert_once(events, user.addr()),
        (_, events) => {
            opened.alert(events, user.addr());
            Ok(())
        }
    }))
}
