//! The list of all limits.

use crate::limit::LimitDeclaration;
use crate::{calls, channels, memory, page_cache, pages, rings, starts, storage, wakes};

/// Limits of one kind.
#[derive(Debug)]
pub struct Group {
    /// Their common name.
    pub name: &'static str,
    /// The limits, in the order of measurement.
    pub limits: &'static [LimitDeclaration],
}

/// All groups of limits.
pub static GROUPS: &[Group] = &[
    Group { name: "calls", limits: calls::LIMITS },
    Group { name: "rings", limits: rings::LIMITS },
    Group { name: "pages", limits: pages::LIMITS },
    Group { name: "memory", limits: memory::LIMITS },
    Group { name: "page cache", limits: page_cache::LIMITS },
    Group { name: "channels", limits: channels::LIMITS },
    Group { name: "wake-ups", limits: wakes::LIMITS },
    Group { name: "starts", limits: starts::LIMITS },
    Group { name: "storage", limits: storage::LIMITS },
];

/// Iterates over every limit, in order.
pub fn declarations() -> impl Iterator<Item = &'static LimitDeclaration> {
    GROUPS.iter().flat_map(|group| group.limits)
}

/// Returns the limit called `name`.
pub fn declaration(name: &str) -> Option<&'static LimitDeclaration> {
    declarations().find(|declaration| declaration.name == name)
}
