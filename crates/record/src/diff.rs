//! `iotomy.diff/1`: two sides of runs of one kind, and how they differ. It is written and not read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Difference, WholeCall};

/// Two sides compared. A difference is always that of B from A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// Always [`Diff::SCHEMA`].
    pub schema: &'static str,
    /// The kind of the records: `trace` or `anatomy`.
    pub kind: &'static str,
    /// The earlier side.
    pub a: DiffSide,
    /// The later side.
    pub b: DiffSide,
    /// Conditions that differ between the first records of the sides.
    pub conditions: Vec<Difference>,
    /// Whether sums are per second of the watch: running processes were watched.
    pub per_second: bool,
    /// Whether there were runs enough to tell differences from noise.
    pub judged: bool,
    /// Figures of the whole runs: one row per figure.
    pub totals: Vec<Delta>,
    /// By program.
    pub programs: Vec<DiffRow>,
    /// By program and system call.
    pub calls: Vec<DiffRow>,
    /// By program and operation of io_uring.
    pub ring_operations: Vec<DiffRow>,
    /// By file.
    pub files: Vec<DiffRow>,
    /// By what is at the other end of sockets and pipes.
    pub peers: Vec<DiffRow>,
    /// Requests over connections, by program, peer and role.
    pub requests: Vec<DiffRow>,
    /// By path, call and outcome.
    pub paths: Vec<DiffRow>,
    /// The variables that calls were grouped by; empty where they were not, or by others on the two sides.
    pub by: Vec<String>,
    /// By values of these variables.
    pub groups: Vec<DiffRow>,
    /// By program and name of a thread.
    pub threads: Vec<DiffRow>,
    /// Of anatomies: by system call and layer.
    pub layers: Vec<DiffRow>,
    /// Of anatomies: by layer and innermost function.
    pub functions: Vec<DiffRow>,
    /// One entry per finding of either side.
    pub findings: Vec<FindingRuns>,
    /// The slowest single calls of either side: they explain a maximum, and are not compared.
    pub slowest: SlowCalls,
    /// Tables that some runs have and others have not, and which are therefore not compared.
    pub left_out: Vec<LeftOut>,
}

impl Diff {
    /// The schema of this type.
    pub const SCHEMA: &'static str = "iotomy.diff/1";

    /// The tables by name.
    pub fn tables(&self) -> [(&'static str, &[DiffRow]); 11] {
        [
            ("programs", &self.programs),
            ("calls", &self.calls),
            ("ring_operations", &self.ring_operations),
            ("files", &self.files),
            ("peers", &self.peers),
            ("requests", &self.requests),
            ("paths", &self.paths),
            ("groups", &self.groups),
            ("threads", &self.threads),
            ("layers", &self.layers),
            ("functions", &self.functions),
        ]
    }

    /// Whether a row stands for several names.
    pub fn rows_of_several(&self) -> bool {
        let mut rows = self.tables().into_iter().flat_map(|(_, rows)| rows);
        rows.any(|row| row.names.is_some())
    }

    /// Whether anything differs beyond noise.
    pub fn is_beyond_noise(&self) -> bool {
        let rows = self.tables().into_iter().flat_map(|(_, rows)| rows);
        let deltas = rows.flat_map(|row| &row.measures).chain(&self.totals);
        deltas.into_iter().any(|delta| delta.beyond_noise == Some(true))
    }
}

/// The runs of a side.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DiffSide {
    /// Where each run is from: the name of a file, or a run of the history.
    pub sources: Vec<String>,
    /// What ran, or was watched, as the first record has it.
    pub subject: String,
    /// When each run began.
    pub started: Vec<String>,
    /// How long each was watched.
    pub wall_ns: Vec<u64>,
    /// Rows and calls for which the observer's bounded tables had no room, in all runs.
    pub lost: u64,
    /// Whether watching slowed the calls so much that times cannot be taken at face value.
    pub times_inflated: bool,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DiffRow {
    /// The program, where the table is by program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The call, file, peer, path, group, thread, layer or function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The call of a layer, the layer of a function, the kind of a file, the call and outcome of a path, the role of
    /// requests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// How its sides differ.
    pub verdict: DiffVerdict,
    /// The side that alone has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_in: Option<DiffSideName>,
    /// Its measures.
    pub measures: Vec<Delta>,
    /// Errors by name: of A, of B.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub error_kinds: BTreeMap<String, [f64; 2]>,
    /// Where the row stands for several names that single runs have, as those of temporary files: how
    /// many of A, of B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<[f64; 2]>,
}

impl DiffRow {
    /// The measure of this name.
    pub fn measure(&self, name: &str) -> Option<&Delta> {
        self.measures.iter().find(|delta| delta.measure == name)
    }

    /// B − A of a measure; 0 where it is unknown.
    pub fn delta(&self, name: &str) -> f64 {
        self.measure(name).map_or(0.0, Delta::delta)
    }
}

/// A side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffSideName {
    /// The earlier.
    A,
    /// The later.
    B,
}

/// How the sides of a row differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffVerdict {
    /// All that is known of it is equal.
    #[default]
    Equal,
    /// Counts are equal, and the difference of times is below the overhead of watching.
    BelowOverhead,
    /// Counts are equal, and times differ, as those of few calls do in any two runs.
    TimesDiffer,
    /// Counts are equal or not known, and the difference of times is within the error of sampling.
    WithinSampling,
    /// It differs, as far as runs of a side differ among themselves.
    WithinNoise,
    /// It differs. Nothing is known of noise.
    Differs,
    /// It differs by more than runs of a side do.
    BeyondNoise,
}

impl DiffVerdict {
    /// Whether there is a difference to show.
    pub fn is_shown(self) -> bool {
        matches!(self, Self::Differs | Self::BeyondNoise)
    }
}

/// A measure of both sides.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Delta {
    /// Its name, with its unit behind it where it has one: `calls`, `wall_ns`.
    pub measure: &'static str,
    /// The median of A's runs; absent where it is unknown.
    pub a: Option<f64>,
    /// The median of B's runs.
    pub b: Option<f64>,
    /// The value of each run of A, where there are several runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_a: Vec<Option<f64>>,
    /// The same of B.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_b: Vec<Option<f64>>,
    /// The interval of B − A of this measure alone, of 95 %; absent with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Within how much of B − A the truth of these runs lies, where it was sampled: 95 times in 100 for all
    /// rows of the table together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_error: Option<f64>,
    /// The most of B − A that may be the overhead of watching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
    /// Whether the difference is beyond noise, all measures considered together; absent with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_noise: Option<bool>,
}

impl Delta {
    /// B − A; 0 where either is unknown.
    pub fn delta(&self) -> f64 {
        match (self.a, self.b) {
            (Some(a), Some(b)) => b - a,
            _ => 0.0,
        }
    }
}

/// A finding, and how many runs have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingRuns {
    /// Its id.
    pub id: String,
    /// Its text in the last run that has it.
    pub text: String,
    /// Runs of A with it.
    pub a: u64,
    /// Runs of B with it.
    pub b: u64,
}

/// The slowest single calls of each side.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SlowCalls {
    /// Of all runs of A, the longest first.
    pub a: Vec<WholeCall>,
    /// Of all runs of B.
    pub b: Vec<WholeCall>,
}

/// A table that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub table: &'static str,
    /// Why, in words.
    pub why: String,
}
