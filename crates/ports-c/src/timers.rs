//! The functions of timers: timers with `SIGEV_PORT` are a port's, all others the C library's.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use iotomy_ports::{Clock, Errno, Port, TimerId, TimerSetting};

use crate::calls::{fail, status};
use crate::opened::{Opened, PORTS};
use crate::replaced::Replaced;

/// As in port.h; Solaris' own value is Linux's `SIGEV_THREAD_ID`.
const SIGEV_PORT: c_int = 0x504f;

/// `port_notify_t`.
#[repr(C)]
struct Notify {
    port: c_int,
    user: *mut c_void,
}

/// The ports of this process' timers.
static TIMERS: Mutex<Option<HashMap<TimerId, Weak<Opened<Port>>>>> = Mutex::new(None);

fn ports() -> MutexGuard<'static, Option<HashMap<TimerId, Weak<Opened<Port>>>>> {
    TIMERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with the port of a timer; `EINVAL` if the timer or the port is gone.
fn with_port<T>(id: TimerId, act: impl FnOnce(&Port) -> Result<T, Errno>) -> Result<T, Errno> {
    let opened = ports().as_ref().and_then(|ports| ports.get(&id)?.upgrade());
    let opened = opened.ok_or(Errno::INVAL)?;
    act(&opened)
}

fn id_of(timer: libc::timer_t) -> Option<TimerId> {
    TimerId::from_object(timer.addr())
}

static TIMER_CREATE: Replaced = Replaced::new(c"timer_create");
static TIMER_SETTIME: Replaced = Replaced::new(c"timer_settime");
static TIMER_GETTIME: Replaced = Replaced::new(c"timer_gettime");
static TIMER_GETOVERRUN: Replaced = Replaced::new(c"timer_getoverrun");
static TIMER_DELETE: Replaced = Replaced::new(c"timer_delete");

/// `int timer_create(clockid_t clock_id, struct sigevent *evp, timer_t *timerid)`.
///
/// # Safety
/// As timer_create(2); with `SIGEV_PORT`, the value points to a `port_notify_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_create(
    clock: libc::clockid_t,
    event: *mut libc::sigevent,
    timer: *mut libc::timer_t,
) -> c_int {
    // SAFETY: null, or the caller's.
    let wanted = unsafe { event.as_ref() };
    let Some(wanted) = wanted.filter(|wanted| wanted.sigev_notify == SIGEV_PORT) else {
        let own = TIMER_CREATE.address();
        if own.is_null() {
            return fail(Errno::NOSYS);
        }
        type Own =
            unsafe extern "C" fn(libc::clockid_t, *mut libc::sigevent, *mut libc::timer_t) -> c_int;
        // SAFETY: the function of this name in the C library has this type.
        let own: Own = unsafe { transmute(own) };
        // SAFETY: the caller's word.
        return unsafe { own(clock, event, timer) };
    };
    let notify = wanted.sigev_value.sival_ptr.cast::<Notify>();
    // SAFETY: null, or the caller's.
    let Some(notify) = (unsafe { notify.as_ref() }) else { return fail(Errno::FAULT) };
    if timer.is_null() {
        return fail(Errno::FAULT);
    }
    match create(clock, notify) {
        Ok(id) => {
            // SAFETY: there is room for a timer's number.
            unsafe { *timer = std::ptr::without_provenance_mut(id.object()) };
            0
        }
        Err(error) => fail(error),
    }
}

fn create(clock: libc::clockid_t, notify: &Notify) -> Result<TimerId, Errno> {
    let clock = match clock {
        libc::CLOCK_REALTIME => Clock::Realtime,
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        libc::CLOCK_BOOTTIME => Clock::Boottime,
        _ => return Err(Errno::INVAL),
    };
    let opened = PORTS.find(notify.port)?;
    let id = opened.add_timer(clock, notify.user.addr())?;
    let mut ports = ports();
    let ports = ports.get_or_insert_default();
    // Timers end with their port without a word.
    if ports.len().is_power_of_two() {
        ports.retain(|_, port| port.strong_count() > 0);
    }
    ports.insert(id, Arc::downgrade(&opened));
    Ok(id)
}

/// `int timer_settime(timer_t timerid, int flags, const struct itimerspec *value,
/// struct itimerspec *ovalue)`.
///
/// # Safety
/// As timer_settime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_settime(
    timer: libc::timer_t,
    flags: c_int,
    value: *const libc::itimerspec,
    old: *mut libc::itimerspec,
) -> c_int {
    let Some(id) = id_of(timer) else {
        let own = TIMER_SETTIME.address();
        if own.is_null() {
            return fail(Errno::NOSYS);
        }
        type Own = unsafe extern "C" fn(
            libc::timer_t,
            c_int,
            *const libc::itimerspec,
            *mut libc::itimerspec,
        ) -> c_int;
        // SAFETY: the function of this name in the C library has this type.
        let own: Own = unsafe { transmute(own) };
        // SAFETY: the caller's word.
        return unsafe { own(timer, flags, value, old) };
    };
    // SAFETY: null, or the caller's.
    let Some(value) = (unsafe { value.as_ref() }) else { return fail(Errno::INVAL) };
    let is_absolute = flags & libc::TIMER_ABSTIME != 0;
    let set =
        setting(value).and_then(|new| with_port(id, |port| port.set_timer(id, new, is_absolute)));
    // SAFETY: null, or the caller's.
    status(set.map(|before| unsafe { put(before, old) }))
}

/// `int timer_gettime(timer_t timerid, struct itimerspec *value)`.
///
/// # Safety
/// As timer_gettime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_gettime(
    timer: libc::timer_t,
    value: *mut libc::itimerspec,
) -> c_int {
    let Some(id) = id_of(timer) else {
        let own = TIMER_GETTIME.address();
        if own.is_null() {
            return fail(Errno::NOSYS);
        }
        type Own = unsafe extern "C" fn(libc::timer_t, *mut libc::itimerspec) -> c_int;
        // SAFETY: the function of this name in the C library has this type.
        let own: Own = unsafe { transmute(own) };
        // SAFETY: the caller's word.
        return unsafe { own(timer, value) };
    };
    if value.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: the caller's.
    status(with_port(id, |port| port.timer(id)).map(|now| unsafe { put(now, value) }))
}

/// `int timer_getoverrun(timer_t timerid)`.
///
/// # Safety
/// As timer_getoverrun(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_getoverrun(timer: libc::timer_t) -> c_int {
    match id_of(timer) {
        // SAFETY: the caller's word.
        None => unsafe { by_timer_alone(&TIMER_GETOVERRUN, timer) },
        Some(id) => with_port(id, |port| port.timer_overrun(id)).unwrap_or_else(fail),
    }
}

/// `int timer_delete(timer_t timerid)`.
///
/// # Safety
/// As timer_delete(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_delete(timer: libc::timer_t) -> c_int {
    let Some(id) = id_of(timer) else {
        // SAFETY: the caller's word.
        return unsafe { by_timer_alone(&TIMER_DELETE, timer) };
    };
    let removed = with_port(id, |port| port.remove_timer(id));
    if let Some(ports) = ports().as_mut() {
        ports.remove(&id);
    }
    status(removed)
}

/// # Safety
/// The function takes a timer, which is valid.
unsafe fn by_timer_alone(own: &Replaced, timer: libc::timer_t) -> c_int {
    let own = own.address();
    if own.is_null() {
        return fail(Errno::NOSYS);
    }
    // SAFETY: the caller's word.
    let own: unsafe extern "C" fn(libc::timer_t) -> c_int = unsafe { transmute(own) };
    // SAFETY: the caller's word.
    unsafe { own(timer) }
}

fn setting(spec: &libc::itimerspec) -> Result<TimerSetting, Errno> {
    let duration = |time: &libc::timespec| {
        let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::INVAL)?;
        let rest = u32::try_from(time.tv_nsec).ok().filter(|rest| *rest < 1_000_000_000);
        Ok(Duration::new(seconds, rest.ok_or(Errno::INVAL)?))
    };
    Ok(TimerSetting { value: duration(&spec.it_value)?, interval: duration(&spec.it_interval)? })
}

/// # Safety
/// The pointer is null or valid.
unsafe fn put(setting: TimerSetting, spec: *mut libc::itimerspec) {
    let timespec = |time: Duration| libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    let new = libc::itimerspec {
        it_interval: timespec(setting.interval),
        it_value: timespec(setting.value),
    };
    if !spec.is_null() {
        // SAFETY: the caller's word.
        unsafe { spec.write(new) };
    }
}
