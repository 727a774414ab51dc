//! Timers that send their expirations to a port (`PORT_SOURCE_TIMER`), by `timerfd_create(2)`.
//!
//! A timer stays associated until it is removed. Expirations that nobody has retrieved yet are
//! counted, in the kernel, and are one event.

mod association;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use iotomy_sys::private_fd::PrivateFd;
use rustix::io::Errno;
use rustix::time::{Itimerspec, Timespec};

use crate::shared::Node;

/// A timer of this process; `Event::object` of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId(usize);

/// Numbers that are neither the kernel's timers nor glibc's, whose uppermost bit is set.
const FIRST_TIMER: usize = 1 << 62;

static NEXT_TIMER: AtomicUsize = AtomicUsize::new(FIRST_TIMER);

impl TimerId {
    /// The timer of an event.
    #[must_use]
    pub const fn from_object(object: usize) -> Option<Self> {
        if object & !(FIRST_TIMER - 1) == FIRST_TIMER { Some(Self(object)) } else { None }
    }

    /// Its number in events.
    #[must_use]
    pub const fn object(self) -> usize {
        self.0
    }
}

/// The clock of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_REALTIME`, which can be set.
    Realtime,
    /// `CLOCK_MONOTONIC`, Solaris' `CLOCK_HIGHRES`.
    Monotonic,
    /// `CLOCK_BOOTTIME`, which counts suspensions.
    Boottime,
}

/// When a timer expires (`struct itimerspec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimerSetting {
    /// The time until it expires, or of the clock; 0 for a timer that does not run.
    pub value: Duration,
    /// The time between later expirations; 0 for none.
    pub interval: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Timers(HashMap<TimerId, Timer>);

#[derive(Debug)]
struct Timer {
    fd: PrivateFd,
    node: Node,
    user: usize,
    /// Expirations beyond the first of the event that was last retrieved.
    overrun: i32,
}

fn timespec(duration: Duration) -> Result<Timespec, Errno> {
    Timespec::try_from(duration).map_err(|_| Errno::INVAL)
}

fn setting_of(spec: &Itimerspec) -> TimerSetting {
    let duration = |time: Timespec| Duration::try_from(time).unwrap_or_default();
    TimerSetting { value: duration(spec.it_value), interval: duration(spec.it_interval) }
}
