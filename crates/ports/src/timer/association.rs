//! The timers of a port.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use iotomy_sys::epoll::Change;
use iotomy_sys::forks;
use iotomy_sys::private_fd::PrivateFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_gettime,
    timerfd_settime,
};

use super::{Clock, NEXT_TIMER, Timer, TimerId, TimerSetting, setting_of, timespec};
use crate::event::{Event, Source};
use crate::port::{Port, READABLE};
use crate::retrieve::Fate;
use crate::shared::{Kind, Locked, Node, State};

impl Port {
    /// Makes a timer whose events have this value (`timer_create` with `SIGEV_PORT`). It does not run.
    ///
    /// # Errors
    /// `EAGAIN` if the port or the process has too many objects.
    pub fn add_timer(&self, clock: Clock, user: usize) -> Result<TimerId, Errno> {
        let clock = match clock {
            Clock::Realtime => TimerfdClockId::Realtime,
            Clock::Monotonic => TimerfdClockId::Monotonic,
            Clock::Boottime => TimerfdClockId::Boottime,
        };
        let fd = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let fd = PrivateFd::from(fd.map_err(|_| Errno::AGAIN)?);
        let id = TimerId(NEXT_TIMER.fetch_add(1, Ordering::Relaxed));
        let locked = self.lock();
        let node = locked.add(Kind::Timer, forks::process_id(), id.0)?;
        let armed = locked.set_state(node, State::Armed);
        let armed =
            armed.and_then(|()| self.watch(&locked, node, Change::Add, fd.as_fd(), READABLE));
        if armed.is_err() {
            locked.remove(node);
            return Err(Errno::AGAIN);
        }
        self.local.own().timers.0.insert(id, Timer { fd, node, user, overrun: 0 });
        Ok(id)
    }

    /// Starts a timer, or stops it (`timer_settime`), and returns its setting until now. Expirations
    /// that were not retrieved are void.
    ///
    /// # Errors
    /// `EINVAL` if this process has no such timer in the port, or the time is out of range.
    pub fn set_timer(
        &self,
        id: TimerId,
        setting: TimerSetting,
        is_absolute: bool,
    ) -> Result<TimerSetting, Errno> {
        let locked = self.lock();
        let own = self.local.own();
        let timer = own.timers.0.get(&id).ok_or(Errno::INVAL)?;
        let flags = match is_absolute {
            true => TimerfdTimerFlags::ABSTIME,
            false => TimerfdTimerFlags::empty(),
        };
        let new = Itimerspec {
            it_value: timespec(setting.value)?,
            it_interval: timespec(setting.interval)?,
        };
        let old = timerfd_settime(&timer.fd, flags, &new)?;
        locked.renew(timer.node);
        locked.set_state(timer.node, State::Armed)?;
        self.watch(&locked, timer.node, Change::Modify, timer.fd.as_fd(), READABLE)?;
        self.bell.settle(&self.shared, &locked);
        Ok(setting_of(&old))
    }

    /// The time until a timer expires, and its interval (`timer_gettime`).
    ///
    /// # Errors
    /// `EINVAL` if this process has no such timer in the port.
    pub fn timer(&self, id: TimerId) -> Result<TimerSetting, Errno> {
        let own = self.local.own();
        let timer = own.timers.0.get(&id).ok_or(Errno::INVAL)?;
        Ok(setting_of(&timerfd_gettime(&timer.fd)?))
    }

    /// The expirations beyond the first in the event that was last retrieved (`timer_getoverrun`).
    ///
    /// # Errors
    /// `EINVAL` if this process has no such timer in the port.
    pub fn timer_overrun(&self, id: TimerId) -> Result<i32, Errno> {
        self.local.own().timers.0.get(&id).map(|timer| timer.overrun).ok_or(Errno::INVAL)
    }

    /// Removes a timer (`timer_delete`), with an event that was not retrieved.
    ///
    /// # Errors
    /// `EINVAL` if this process has no such timer in the port.
    pub fn remove_timer(&self, id: TimerId) -> Result<(), Errno> {
        let locked = self.lock();
        let timer = self.local.own().timers.0.remove(&id).ok_or(Errno::INVAL)?;
        // A child may have a copy of the descriptor, which would keep it in the set.
        self.unwatch(timer.fd.as_fd());
        locked.remove(timer.node);
        self.bell.settle(&self.shared, &locked);
        Ok(())
    }

    /// Delivers the expirations of a timer, and makes it ready for the next ones.
    pub(crate) fn deliver_timer(&self, locked: &Locked<'_>, node: Node) -> Fate {
        let mut own = self.local.own();
        let id = TimerId(locked.object(node));
        let Some(timer) = own.timers.0.get_mut(&id) else {
            locked.remove(node);
            return Fate::Void;
        };
        let mut expirations = [0; 8];
        let read = rustix::io::read(&timer.fd, &mut expirations[..]);
        locked.renew(node);
        // Its claim on room is the one that it had in the queue.
        let armed = locked.set_state(node, State::Armed);
        let armed = armed
            .and_then(|()| self.watch(locked, node, Change::Modify, timer.fd.as_fd(), READABLE));
        if read.is_err() || armed.is_err() {
            return Fate::Void;
        }
        let count = i32::try_from(u64::from_ne_bytes(expirations)).unwrap_or(i32::MAX);
        timer.overrun = count - 1;
        Fate::Delivered(Event::new(Source::Timer, count, id.0, timer.user))
    }
}
