//! Pairs of sockets that the cases of an experiment share, as many as the largest of them takes: what
//! `enter-leave` and `models` have in common.

use iotomy_host::Skip;
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{WAITERS, Waiter};

use crate::harness::bounds::SoftLimit;
use crate::harness::{Params, Takes};
use crate::wait::rounds::{count, open, refused};

/// The axis that says how many.
pub(super) const DESCRIPTORS: &str = "descriptors";

/// The waiters that make calls.
pub(super) fn waiters() -> Vec<&'static str> {
    let waiters = WAITERS.iter().filter(|waiter| !waiter.calls.wait.is_empty());
    waiters.map(|waiter| waiter.name).collect()
}

/// How many there may be, so many as a machine might have descriptors.
pub(super) const HOW_MANY: Takes = Takes::Numbers(1, 500_000);

/// Pairs, and the limit that lets this process have them.
pub(super) struct Pairs {
    pub(super) ring: Ring,
    most: usize,
    _limit: SoftLimit,
}

impl Pairs {
    /// As many as the largest of these cases takes.
    pub(super) fn for_cases(cases: &[Params]) -> Result<Self, Skip> {
        let limit = SoftLimit::raise()?;
        let most = count(cases.iter().map(|case| case.number(DESCRIPTORS)).max().unwrap_or(1));
        Ok(Self { ring: Ring::new(most).map_err(refused)?, most, _limit: limit })
    }

    /// Others in their place: what was not received must not be found by the next case.
    pub(super) fn renew(&mut self) -> Result<(), Skip> {
        self.ring = Ring::new(self.most).map_err(refused)?;
        Ok(())
    }

    /// A waiter of this name, and as many pairs as the case has, of which it watches none yet.
    pub(super) fn open(
        &mut self,
        case: &Params,
        name: &str,
    ) -> Result<(Box<dyn Waiter>, usize), Skip> {
        let pairs = count(case.number(DESCRIPTORS));
        self.ring.take_first(pairs);
        Ok((open(name, pairs)?, pairs))
    }

    /// Has the waiter watch all that take part, or none of them.
    pub(super) fn register(&self, waiter: &mut dyn Waiter) -> Result<(), Skip> {
        self.ring.register(waiter).or_else(|(watched, error)| {
            self.ring.leave(waiter, watched).map_err(refused)?;
            Err(refused(error))
        })
    }
}
