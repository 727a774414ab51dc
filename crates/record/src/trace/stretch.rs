//! Which stretch of a watch a record is of.

use serde::{Deserialize, Serialize};

/// The place of an interval in its watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Its number, from 1.
    pub number: u64,
    /// When it began, since the watch did.
    pub start_ns: u64,
    /// Whether the watch ended with it.
    #[serde(default, skip_serializing_if = "crate::absent::is_false")]
    pub is_last: bool,
}

/// The stretch that a record is of. Its length is the record's `wall_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// The length that was asked for.
    pub asked_ns: u64,
    /// When the stretch began, since the watch did.
    pub start_ns: u64,
}
