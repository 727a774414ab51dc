//! The calls a waiter makes, and the operations that it submits to a ring, declared so that a test can count them.

/// Begins the name of an operation of io_uring: `ring:poll_add`.
pub const RING: &str = "ring:";

/// The calls of each operation, and no others. What is queued for a ring is submitted with a later call.
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
    /// As section 2 of the manual has it; an operation of io_uring is [`RING`] with its name.
    pub name: &'static str,
    /// How often.
    pub times: Times,
}

/// How often a call is made in one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Exactly this often.
    Exactly(u64),
    /// Once for each descriptor watched.
    EachDescriptor,
    /// Once for each event.
    EachEvent,
    /// Once for each event, and once more to find that there are no others.
    EachEventAndOnce,
    /// Only rarely; the description says when.
    Rarely,
}

impl Times {
    /// How often it is made in operations that nothing disturbs.
    pub fn expected(self, operations: u64, descriptors: u64, events: u64) -> u64 {
        match self {
            Self::Exactly(times) => times * operations,
            Self::EachDescriptor => descriptors * operations,
            Self::EachEvent => events,
            Self::EachEventAndOnce => events + operations,
            Self::Rarely => 0,
        }
    }

    /// The text for tables, which list calls that are made rarely apart.
    pub fn summary(self) -> String {
        match self {
            Self::Exactly(1) | Self::Rarely => String::new(),
            Self::Exactly(times) => format!(" × {times}"),
            Self::EachDescriptor => " × descriptors".to_owned(),
            Self::EachEvent => " × events".to_owned(),
            Self::EachEventAndOnce => " × (events + 1)".to_owned(),
        }
    }
}

/// A call made exactly this often.
pub(crate) const fn exactly(times: u64, name: &'static str) -> Call {
    Call { name, times: Times::Exactly(times) }
}

/// A call made once.
pub(crate) const fn once(name: &'static str) -> Call {
    exactly(1, name)
}

/// A call made only now and then.
pub(crate) const fn rarely(name: &'static str) -> Call {
    Call { name, times: Times::Rarely }
}
