//! Descriptors that the handlers of signals close while their thread is inside of a port, a set or a queue.
//!
//! `close(2)` is safe in a handler, so what is told of a close must not wait for a lock there: the thread
//! that was interrupted may hold it. Such a close is noted, and whoever takes the lock next ends what is
//! watched of the descriptor. The note is made before the close, so its number cannot be in use again by
//! then without that lock having been taken.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_ctl};
use iotomy_sys::private_fd::PrivateFd;

thread_local! {
    /// How many locks the thread holds, or is about to take.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// A thread that is inside of a lock. It is made before the lock is taken, and dropped after it is released.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn enter() -> Self {
        INSIDE.with(|inside| inside.set(inside.get() + 1));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(inside.get() - 1));
    }
}

/// Whether this is the handler of a signal that interrupted its thread inside of a lock.
pub(crate) fn is_inside() -> bool {
    INSIDE.with(Cell::get) > 0
}

/// Closes that were noted: up to 32 ranges of descriptors.
#[derive(Debug)]
pub(crate) struct NotedCloses {
    has_some: AtomicBool,
    ranges: [AtomicU64; 32],
}

/// How many descriptors of a range are taken out of the sets at once.
const OUT_OF_SETS: usize = 1024;

/// A place without a range: its first number is above its last one.
const FREE: u64 = 1 << 32;

impl NotedCloses {
    pub(crate) const fn new() -> Self {
        Self { has_some: AtomicBool::new(false), ranges: [const { AtomicU64::new(FREE) }; 32] }
    }

    /// Notes that descriptors are about to be closed; beyond the 32nd range nothing is noted. They are taken out
    /// of the kernel's sets now: once they are closed, nobody can, and a set would tell of a duplicate's level
    /// again and again.
    pub(crate) fn note(&self, fds: RangeInclusive<u32>, sets: &[&PrivateFd]) {
        for (fd, set) in
            fds.clone().take(OUT_OF_SETS).flat_map(|fd| sets.iter().map(move |set| (fd, set)))
        {
            // Fails if it is not in the set.
            let _ = epoll_ctl(set.as_fd(), Change::Remove, fd.cast_signed(), EpollEvent::default());
        }
        let range = u64::from(*fds.start()) << 32 | u64::from(*fds.end());
        let is_put = |place: &AtomicU64| {
            place.compare_exchange(FREE, range, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        if self.ranges.iter().any(is_put) {
            self.has_some.store(true, Ordering::SeqCst);
        }
    }

    /// Gives the closes that were noted to `end`; for who holds the lock.
    #[inline]
    pub(crate) fn take(&self, mut end: impl FnMut(RangeInclusive<u32>)) {
        if self.has_some.load(Ordering::Relaxed) && self.has_some.swap(false, Ordering::SeqCst) {
            for place in &self.ranges {
                let range = place.swap(FREE, Ordering::SeqCst);
                if range != FREE {
                    end((range >> 32) as u32..=range as u32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_are_noted_as_far_as_there_is_room_and_taken_once() {
        let noted = NotedCloses::new();
        let taken = || {
            let mut taken = Vec::new();
            noted.take(|fds| taken.push(fds));
            taken
        };
        assert_eq!(taken(), []);
        let note = |fds| noted.note(fds, &[]);
        note(7..=7);
        note(0..=u32::MAX);
        assert_eq!(taken(), [7..=7, 0..=u32::MAX]);
        (0..40).for_each(|fd| note(fd..=fd));
        assert_eq!(taken().len(), 32);
        assert_eq!(taken(), []);
    }

    #[test]
    fn a_thread_is_inside_until_the_last_lock_is_released() {
        let outer = Inside::enter();
        let inner = Inside::enter();
        drop(outer);
        assert!(is_inside());
        drop(inner);
        assert!(!is_inside());
    }
}
