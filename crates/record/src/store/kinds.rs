//! The single list of kinds of records, by which they are distinguished.

/// The kinds of records, as their schemas name them.
pub const KINDS: [&str; 7] = ["trace", "anatomy", "race", "copy", "limits", "sweep", "d"];
