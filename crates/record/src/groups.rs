//! Calls grouped by values of theirs.

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::statistics;

/// All counted calls that returned, by the values of some variables.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Groups {
    /// The variables, as `--by` has them.
    pub by: Vec<String>,
    /// One entry for each combination of values, the longest time first.
    pub rows: Vec<Group>,
    /// Calls in no row, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_calls: u64,
}

statistics! {
    /// Calls with the same values.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Group {
        /// The value of each variable.
        pub key: Vec<Key>,
        /// Calls that returned.
        pub calls: u64 => sum(Count).column("calls", 8),
        /// Of those, the ones that returned an error.
        pub errors: u64 => sum(Count).column("errors", 2).blank(),
        /// The bytes that they moved.
        pub bytes: u64 => sum(Bytes).column("bytes", 4).blank(),
        /// Their time from entry to return.
        pub wall_ns: u64 => sum(Time).column("wall", 7),
        /// The longest single call.
        pub max_ns: u64 => most(Time).column("max", 3),
    }
}

/// A value. Of bytes and durations, it is the lowest of a power of two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// Of an integer variable.
    Number(i64),
    /// Of a string variable, or the name of an error; empty where the call has none.
    Text(String),
}
