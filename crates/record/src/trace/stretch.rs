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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ring {
    /// The length that was asked for.
    pub asked_ns: u64,
    /// When the stretch began, since the watch did.
    pub start_ns: u64,
    /// Whether the watch went on after it.
    #[serde(default, skip_serializing_if = "crate::absent::is_false")]
    pub goes_on: bool,
    /// Of so many calls that fulfilled the condition of `--until` the records are kept (`--keep`); absent where one ends
    /// the watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u32>,
    /// Then: how many there were so far, one a stretch at most.
    #[serde(default, skip_serializing_if = "crate::absent::is_zero")]
    pub fired: u64,
    /// What iotomy itself has used since the watch began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnUse>,
}

/// The CPU time and the memory of a watch that may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnUse {
    /// CPU time of iotomy's own process, without what it adds to the calls of others.
    pub cpu_ns: u64,
    /// Its resident memory.
    pub rss_bytes: u64,
    /// The memory of its tables in the kernel.
    pub table_bytes: u64,
}
