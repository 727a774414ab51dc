//! The filter `TIMER`: intervals and moments, by `timerfd_create(2)`.

use std::os::fd::AsFd;
use std::time::Duration;

use iotomy_sys::private_fd::PrivateFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::Verdict;
use super::kevent::{Kevent, flag, note};
use super::notes::{Note, Source};

const UNITS: u32 = note::SECONDS | note::MSECONDS | note::USECONDS | note::NSECONDS;

/// Makes and starts the timer of a new note.
pub(super) fn start(note: &mut Note) -> Result<(), Errno> {
    let time = time(note)?;
    let is_absolute = note.wanted & note::ABSTIME != 0;
    let clock = if is_absolute { TimerfdClockId::Realtime } else { TimerfdClockId::Monotonic };
    let fd = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    let is_once = is_absolute || note.has(flag::ONESHOT);
    // A value of 0 would stop it.
    let value = timespec(time.max(Duration::from_nanos(1)));
    let interval = if is_once { timespec(Duration::ZERO) } else { value };
    let kind = if is_absolute { TimerfdTimerFlags::ABSTIME } else { TimerfdTimerFlags::empty() };
    timerfd_settime(&fd, kind, &Itimerspec { it_interval: interval, it_value: value })?;
    if !is_absolute {
        note.event.flags |= flag::CLEAR;
    }
    note.source = Source::Timer { fd: PrivateFd::from(fd), expirations: 0 };
    Ok(())
}

/// Starts a timer anew with other values; what it has told until now is void. Returns the old one.
pub(super) fn restart(note: &mut Note, change: Kevent) -> Result<Source, Errno> {
    let before = (note.wanted, note.amount);
    let old = std::mem::replace(&mut note.source, Source::User { is_triggered: false });
    (note.wanted, note.amount) = (change.fflags, change.data);
    match start(note) {
        Ok(()) => Ok(old),
        Err(error) => {
            (note.wanted, note.amount) = before;
            note.source = old;
            Err(error)
        }
    }
}

pub(super) fn ask(note: &mut Note) -> Verdict {
    let is_cleared = note.has(flag::CLEAR);
    let event = note.event;
    let Source::Timer { fd, expirations } = &mut note.source else { return Verdict::Nothing };
    let mut count = [0; 8];
    if rustix::io::read(fd.as_fd(), &mut count[..]).is_ok() {
        *expirations = expirations.saturating_add_unsigned(u64::from_ne_bytes(count));
    }
    if *expirations == 0 {
        return Verdict::Nothing;
    }
    let data = *expirations;
    if is_cleared {
        *expirations = 0;
    }
    Verdict::Event(Kevent { data, ..event })
}

/// The time of a timer.
fn time(note: &Note) -> Result<Duration, Errno> {
    if note.wanted & !(UNITS | note::ABSTIME) != 0 {
        return Err(Errno::INVAL);
    }
    let count = u64::try_from(note.amount).map_err(|_| Errno::INVAL)?;
    let is_periodic = !note.has(flag::ONESHOT) && note.wanted & note::ABSTIME == 0;
    let count = if is_periodic { count.max(1) } else { count };
    Ok(match note.wanted & UNITS {
        note::SECONDS => Duration::from_secs(count),
        0 | note::MSECONDS => Duration::from_millis(count),
        note::USECONDS => Duration::from_micros(count),
        note::NSECONDS => Duration::from_nanos(count),
        _ => return Err(Errno::INVAL),
    })
}

/// The kernel's form; times beyond its range are its last one.
fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: duration.subsec_nanos().into() }
}
