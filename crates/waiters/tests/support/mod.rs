//! What the suites share: descriptors of every kind that can be made ready, and waits that cannot hang
//! for ever. A waiter is left out of what it declares not to do, which is no skip.

#![allow(dead_code, reason = "each suite uses a part")]

pub(crate) mod asleep;
pub(crate) mod watched;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iotomy_test_requirements::{Need, skip};
use iotomy_waiters::{
    Events, Interest, Probe, Ready, Settings, WAITERS, WaitError, Waiter, WaiterDeclaration,
};

/// Longer than anything takes on the slowest machine: only there so that a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// A time-out that only looks.
pub(crate) const LOOK: Option<Duration> = Some(Duration::ZERO);

/// Says that a waiter does not work here.
pub(crate) fn missing(waiter: &str, reason: &str) {
    let rings = waiter.contains("uring") || reason.contains("io_uring");
    let need = if rings { Need::IoUring } else { Need::Machine };
    skip(need, &format!("{waiter}: {reason}"));
}

/// Every waiter that works here and asks the kernel at all.
pub(crate) fn waiters() -> Vec<&'static WaiterDeclaration> {
    let works = |waiter: &&'static WaiterDeclaration| {
        if waiter.calls.wait.is_empty() {
            return false;
        }
        match (waiter.probe)() {
            Probe::Ready => true,
            Probe::Unsupported(reason) => {
                missing(waiter.name, &reason);
                false
            }
        }
    };
    WAITERS.iter().copied().filter(works).collect()
}

/// A waiter and its events.
pub(crate) struct TestedWaiter {
    pub(crate) waiter: Box<dyn Waiter>,
    pub(crate) events: Events,
}

impl TestedWaiter {
    pub(crate) fn test(declaration: &'static WaiterDeclaration) -> Self {
        Self::room_for(declaration, 64)
    }

    pub(crate) fn room_for(declaration: &'static WaiterDeclaration, events: usize) -> Self {
        let waiter = (declaration.open)(&Settings::default()).unwrap();
        Self { waiter, events: Events::with_capacity(events) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.waiter.declaration().name
    }

    pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, token: u64) {
        self.try_add(fd, Interest::READ, token).unwrap();
    }

    pub(crate) fn try_add(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        self.waiter.add(fd, interest, token)
    }

    /// What there is now, as pairs of token and readiness.
    pub(crate) fn poll_now(&mut self) -> Vec<(u64, Ready)> {
        self.waiter.wait(&mut self.events, LOOK).unwrap();
        self.all()
    }

    /// What there is once there is something.
    pub(crate) fn next(&mut self) -> Vec<(u64, Ready)> {
        let found = self.waiter.wait(&mut self.events, Some(PATIENCE)).unwrap();
        assert!(found > 0, "{}: nothing was told", self.name());
        assert_eq!(found, self.events.len());
        self.all()
    }

    /// The single event there is, whose token it must be.
    pub(crate) fn only(&mut self, token: u64) -> Ready {
        let all = self.next();
        assert_eq!(all.len(), 1, "{}: {all:?}", self.name());
        assert_eq!(all[0].0, token, "{}: {all:?}", self.name());
        all[0].1
    }

    /// The first event, whose token it must be; the rest is left out.
    pub(crate) fn first(&mut self, token: u64) -> Ready {
        let all = self.next();
        assert_eq!(all[0].0, token, "{}: {all:?}", self.name());
        all[0].1
    }

    /// Nothing is told.
    pub(crate) fn silent(&mut self, about: &str) {
        let all = self.poll_now();
        assert!(all.is_empty(), "{}: {about}: {all:?}", self.name());
    }

    fn all(&self) -> Vec<(u64, Ready)> {
        self.events.iter().map(|event| (event.token, event.ready)).collect()
    }
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum.unwrap_or(u64::MAX)
}
