//! The calls a waiter makes, declared so that a test can count them.

use std::ops::RangeInclusive;

/// The calls of each operation, and no others.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// Of opening.
    pub open: &'static [Call],
    /// Of one [`crate::Waiter::add`].
    pub add: &'static [Call],
    /// Of one [`crate::Waiter::modify`].
    pub modify: &'static [Call],
    /// Of one [`crate::Waiter::remove`].
    pub remove: &'static [Call],
    /// Of one [`crate::Waiter::wait`] that finds something at once.
    pub wait: &'static [Call],
}

/// A call and how often it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// As section 2 of the manual has it.
    pub name: &'static str,
    /// How often.
    pub times: Times,
}

/// How often a call is made in one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// So often.
    Exactly(u64),
    /// Once for each descriptor watched.
    EachDescriptor,
    /// Once for each event, and once more to find that there are no others.
    EachEventAndOnce,
    /// Only after something has gone wrong; the description says after what.
    Rarely,
}

impl Times {
    /// How often it is made in operations that were as undisturbed as they can be.
    pub fn expected(self, operations: u64, descriptors: u64, events: u64) -> RangeInclusive<u64> {
        let times = match self {
            Self::Exactly(times) => times * operations,
            Self::EachDescriptor => descriptors * operations,
            Self::EachEventAndOnce => events + operations,
            Self::Rarely => 0,
        };
        times..=times
    }
}

/// A call made so often.
pub(crate) const fn exactly(times: u64, name: &'static str) -> Call {
    Call { name, times: Times::Exactly(times) }
}

/// A call made once.
pub(crate) const fn once(name: &'static str) -> Call {
    exactly(1, name)
}

/// A call made only after something has gone wrong.
pub(crate) const fn rarely(name: &'static str) -> Call {
    Call { name, times: Times::Rarely }
}
