//! A row of a comparison: its key and its figures.

use std::collections::btree_map::BTreeMap;

use crate::measures::Measure;

/// A row: program, name, what it is part of.
pub(crate) type Key = (String, String, String);

/// The figures of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowFacts {
    /// The same measures in each row of a table.
    pub(crate) measures: Vec<Measure>,
    pub(crate) error_kinds: BTreeMap<String, f64>,
    /// How many names it stands for, where it stands for several.
    pub(crate) names: Option<u64>,
    /// What watching may have added to its times, at most.
    pub(crate) overhead: f64,
    /// Within how much the sampled time lies; 0 where nothing is sampled.
    pub(crate) sampling_error: f64,
}

/// Errors by name.
pub(crate) fn scaled(kinds: &BTreeMap<String, u64>, scale: f64) -> BTreeMap<String, f64> {
    kinds.iter().map(|(kind, n)| (kind.clone(), *n as f64 * scale)).collect()
}
