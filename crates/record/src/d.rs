//! `iotomy.d/1`: a run of a D program, its aggregations as they were at the end, and its output.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::{Exit, Machine};

/// One run of `iotomy d`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DRun {
    /// Always [`DRun::SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// Where it ran.
    pub machine: Machine,
    /// The script's name; `-n` of a program on the command line.
    pub script: String,
    /// The program's text.
    pub program: String,
    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The command of `-c`, split into words; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// From the attaching of the probes to their detaching.
    pub wall_ns: u64,
    /// How the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The status of `exit()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// A row for each key of each aggregation, in the order in which they are printed.
    pub aggregations: Vec<DRow>,
    /// The output of the program's statements, and the lines of its firings. Aggregations that the program did not
    /// print are not part of it.
    #[serde(default)]
    pub output: String,
    /// The bytes of the output that were not kept, behind those that were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_cut_bytes: u64,
    /// What was lost, by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drops: BTreeMap<String, u64>,
    /// How often clauses ended by an error, by its kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<String, u64>,
}

/// The value of an aggregation for one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DRow {
    /// The aggregation's name, without the `@`.
    pub name: String,
    /// Its function, as `count`.
    pub kind: String,
    /// The keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<DKey>,
    /// The value, which is not divided by `normal`; `None` of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// The buckets of a distribution that are not empty, the lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<DBucket>,
    /// The number by which the value is divided where it is printed, set by `normalize()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<i64>,
    /// Whether `printa()` printed it, so that the output has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
}

/// A key of an aggregation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DKey {
    /// An integer.
    Integer(i64),
    /// One above the largest signed integer.
    Unsigned(u64),
    /// A string, or the frames of a stack, a line each.
    Text(String),
}

/// A bucket of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DBucket {
    /// The lowest value in it; `None` where there is no bound.
    pub low: Option<i64>,
    /// The highest value in it; `None` where there is no bound.
    pub high: Option<i64>,
    /// How many values; negative if the program counted down.
    pub count: i64,
}

impl DRun {
    /// The schema this version writes and reads.
    pub const SCHEMA: &'static str = "iotomy.d/1";
}

impl DRow {
    /// The value as it is printed.
    pub fn shown_value(&self) -> Option<i64> {
        self.value.map(|value| self.divided(value))
    }

    /// A value, or a bucket's count, divided as the program asked for.
    pub fn divided(&self, value: i64) -> i64 {
        self.normal.and_then(|normal| value.checked_div(normal)).unwrap_or(value)
    }

    /// Whether it is a distribution.
    pub fn is_distribution(&self) -> bool {
        self.value.is_none()
    }
}

impl std::fmt::Display for DKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(to),
            Self::Unsigned(number) => number.fmt(to),
            Self::Text(text) => to.write_str(text),
        }
    }
}
