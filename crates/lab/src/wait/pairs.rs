//! Pairs of sockets that the cases of an experiment share, as many as the largest case needs:
//! shared by `enter-leave` and `models`.

use iotomy_host::Skip;
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Capabilities, Model, WAITERS, Waiter};

use crate::harness::bounds::SoftLimit;
use crate::harness::{Params, Takes};
use crate::wait::round::{count, open, refused};

/// The axis with the number of descriptors.
pub(super) const DESCRIPTORS: &str = "descriptors";

/// Returns the waiters that make system calls.
pub(super) fn waiters() -> Vec<&'static str> {
    that(|_| true)
}

/// Returns those that block while nothing happens: the others take seconds of CPU time per round
/// with thousands of descriptors, and run only if they are asked for.
pub(super) fn blocking_waiters() -> Vec<&'static str> {
    that(|capabilities| capabilities.sleeps)
}

/// Returns the waiters of one model.
pub(super) fn waiters_of(model: Model) -> Vec<&'static str> {
    that(|capabilities| capabilities.model == model)
}

/// Returns the waiters that make system calls and whose capabilities are so.
pub(super) fn that(is_so: impl Fn(&Capabilities) -> bool) -> Vec<&'static str> {
    let waiters = WAITERS.iter().filter(|waiter| !waiter.calls.wait.is_empty());
    waiters.filter(|waiter| is_so(&waiter.capabilities)).map(|waiter| waiter.name).collect()
}

/// The range of that number, up to what a machine might allow.
pub(super) const HOW_MANY: Takes = Takes::Numbers(1, 500_000);

/// Pairs, and the raised limit that lets this process open them.
pub(super) struct Pairs {
    pub(super) ring: Ring,
    most: usize,
    _limit: SoftLimit,
}

impl Pairs {
    /// Opens as many pairs as the largest of these cases needs.
    pub(super) fn for_cases(cases: &[Params]) -> Result<Self, Skip> {
        let limit = SoftLimit::raise()?;
        let most = count(cases.iter().map(|case| case.number(DESCRIPTORS)).max().unwrap_or(1));
        Ok(Self { ring: Ring::new(most).map_err(refused)?, most, _limit: limit })
    }

    /// Replaces the pairs: the next case must not find bytes that were not received.
    pub(super) fn renew(&mut self) -> Result<(), Skip> {
        self.ring = Ring::new(self.most).map_err(refused)?;
        Ok(())
    }

    /// Opens a waiter by name, and returns it with the number of pairs of the case; it watches none
    /// of them yet.
    pub(super) fn open(
        &mut self,
        case: &Params,
        name: &str,
    ) -> Result<(Box<dyn Waiter>, usize), Skip> {
        let pairs = count(case.number(DESCRIPTORS));
        self.ring.take_first(pairs);
        Ok((open(name, pairs)?, pairs))
    }

    /// Registers all descriptors of the case with the waiter, or none of them.
    pub(super) fn register(&self, waiter: &mut dyn Waiter) -> Result<(), Skip> {
        self.ring.register(waiter).or_else(|(watched, error)| {
            self.ring.leave(waiter, watched).map_err(refused)?;
            Err(refused(error))
        })
    }
}
