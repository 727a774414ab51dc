//! The functions of iotomy/completion_port.h.
//!
//! Pointers are the caller's word, as in `calls`. A port is no descriptor: it is known by a pointer, which is the
//! caller's from `completion_port_create` to `completion_port_free`.

use std::ffi::{c_int, c_uint};

use iotomy_ports::{Completion, CompletionPort, Errno};

use crate::calls::{fail, limit, status};

/// `completion_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CCompletion {
    key: usize,
    bytes: u32,
    user: usize,
}

/// `completion_port_t *completion_port_create(unsigned int concurrency)`.
#[unsafe(no_mangle)]
pub extern "C" fn completion_port_create(concurrency: c_uint) -> *mut CompletionPort {
    Box::into_raw(Box::new(CompletionPort::new(concurrency as usize)))
}

/// The port of a pointer; `EFAULT` for null.
///
/// # Safety
/// The pointer is null, or a port that has not been freed.
unsafe fn port<'p>(pointer: *mut CompletionPort) -> Result<&'p CompletionPort, Errno> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_ref() }.ok_or(Errno::FAULT)
}

/// `int completion_port_post(completion_port_t *port, const completion_t *completion)`.
///
/// # Safety
/// The port is one that has not been freed, and the completion is valid; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn completion_port_post(
    pointer: *mut CompletionPort,
    completion: *const CCompletion,
) -> c_int {
    // SAFETY: the caller's word.
    let found = unsafe { port(pointer) };
    // SAFETY: as above.
    let completion = unsafe { completion.as_ref() }.ok_or(Errno::FAULT);
    status(found.and_then(|port| {
        let CCompletion { key, bytes, user } = *completion?;
        port.post(Completion { key, bytes, user })
    }))
}

/// `int completion_port_get(completion_port_t *port, completion_t list[], unsigned int max, const struct timespec
/// *timeout)`.
///
/// # Safety
/// The port is null or has not been freed, there is room for `max` completions, and the timeout is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn completion_port_get(
    pointer: *mut CompletionPort,
    list: *mut CCompletion,
    max: c_uint,
    timeout: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's word.
    let found = unsafe { port(pointer) };
    // SAFETY: as above.
    let timeout = unsafe { limit(timeout) };
    let mut place = list;
    let put = |Completion { key, bytes, user }: Completion| {
        // SAFETY: no more than there is room for are put.
        unsafe { place.write(CCompletion { key, bytes, user }) };
        // SAFETY: at most one beyond the last.
        place = unsafe { place.add(1) };
    };
    // What fits into the answer.
    let room = max.min(c_int::MAX.cast_unsigned()) as usize;
    let got = found.and_then(|port| match list.is_null() {
        true if room > 0 => Err(Errno::FAULT),
        _ => port.get_each(room, timeout?, put),
    });
    got.map_or_else(fail, |got| got as c_int)
}

/// `int completion_port_close(completion_port_t *port)`.
///
/// # Safety
/// The port is null, or has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn completion_port_close(pointer: *mut CompletionPort) -> c_int {
    // SAFETY: the caller's word.
    status(unsafe { port(pointer) }.map(CompletionPort::close))
}

/// `void completion_port_free(completion_port_t *port)`.
///
/// # Safety
/// The port is null, or has not been freed, and no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn completion_port_free(pointer: *mut CompletionPort) {
    if !pointer.is_null() {
        // SAFETY: made by `completion_port_create`, and the caller's word.
        let port = unsafe { Box::from_raw(pointer) };
        port.close();
    }
}
