//! `iotomy.sweep/1`: an experiment swept over its axes, and its verdicts on the claims.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::unique_keys;
use crate::{Machine, Volume};

/// An experiment's cases and claims.
///
/// A measured case has samples and their figures, one that was not measured only a reason: a 0
/// never means "unknown". Only an interrupted run ([`SweepRun::is_partial`]) may have cases with
/// neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// [`Sweep::SCHEMA`].
    pub schema: String,
    /// When the run began, RFC 3339.
    pub started: String,
    /// Where it ran.
    pub machine: Machine,
    /// The experiment's name.
    pub experiment: String,
    /// The varied parameters, in the order of the experiment; first [`Sweep::MACHINE`] if there are
    /// several machines.
    pub axes: Vec<SweepAxis>,
    /// Every combination of the axes' values that makes sense.
    pub cases: Vec<Case>,
    /// The verdicts on the experiment's claims.
    pub claims: Vec<Claim>,
    /// The description of the experiment.
    #[serde(default)]
    pub about: ExperimentFacts,
    /// How it was run.
    #[serde(default)]
    pub run: SweepRun,
    /// The machines of a record that was merged from those of several, in the order of the axis
    /// [`Sweep::MACHINE`]; empty if there is but one. [`Sweep::machine`] then has what all have in
    /// common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<SweepMachine>,
}

impl Sweep {
    /// The record's kind and version.
    pub const SCHEMA: &'static str = "iotomy.sweep/1";

    /// The axis of a merged record that says which machine a case is of.
    pub const MACHINE: &'static str = "machine";
}

/// One of several machines of a merged record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepMachine {
    /// The machine; its name is its value of the axis.
    pub machine: Machine,
    /// When its first run began, RFC 3339.
    pub started: String,
    /// The directory its files were created in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// The verdicts from its cases alone.
    pub claims: Vec<Claim>,
}

/// Which share of a plan a record has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which share, from 1.
    pub index: u64,
    /// The number of shares.
    pub of: u64,
    /// Cases of the whole plan.
    pub plan_cases: u64,
    /// The digest of the whole plan.
    pub plan: String,
}

/// A shard that is part of a merged record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedShard {
    /// Which share, from 1.
    pub index: u64,
    /// The name of its machine.
    pub machine: String,
    /// Its cases.
    pub cases: u64,
    /// When it began, RFC 3339.
    pub started: String,
    /// The wall time.
    pub wall_ns: u64,
    /// Its rounds over its cases.
    pub rounds: u64,
    /// The seed of the order of its cases.
    pub seed: u64,
}

/// A varied parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// Its name, for `-L`.
    pub name: String,
    /// The unit of its numbers; empty for counts and names.
    pub unit: String,
    /// In the order they are shown.
    pub values: Vec<AxisValue>,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A count or size.
    Number(u64),
    /// A name.
    Name(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(to, "{number}"),
            Self::Name(name) => to.write_str(name),
        }
    }
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// A value of each axis.
    #[serde(deserialize_with = "unique_keys")]
    pub params: BTreeMap<String, AxisValue>,
    /// The metric.
    pub metric: String,
    /// The unit: `ns`, `bytes`, `1/s`; empty for a count.
    pub unit: String,
    /// Every measurement, in the order they were made.
    pub samples: Vec<f64>,
    /// Of the samples; `None` without any, as the figures below.
    pub median: Option<f64>,
    /// Of the samples.
    pub mean: Option<f64>,
    /// Of the samples.
    pub stddev: Option<f64>,
    /// Of the median; `None` also with too few samples.
    pub ci95: Option<[f64; 2]>,
    /// The figures of the other measurements.
    #[serde(deserialize_with = "unique_keys")]
    pub extra: BTreeMap<String, f64>,
    /// Why it was not measured.
    pub skipped: Option<String>,
    /// The least sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Further measurements with each sample, for the keys of [`Case::extra`] that have them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(deserialize_with = "unique_keys")]
    pub extra_samples: BTreeMap<String, Vec<f64>>,
    /// The error after part of it had been measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The visits of the samples, in their order: samples of one visit are alike. Empty in records
    /// without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<Visit>,
}

impl Case {
    /// The text of [`Case::skipped`] for a case that the run had no time for.
    pub const NO_TIME: &str = "the time was up before its turn; give it more with --max-time";

    /// Whether the run had no time for it.
    pub fn had_no_time(&self) -> bool {
        self.skipped.as_deref() == Some(Self::NO_TIME)
    }
}

/// One time that a case was set up, measured and taken down again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// In which round, from 1.
    pub round: u64,
    /// How many samples it gave.
    pub samples: u64,
    /// The wall time in all.
    pub wall_ns: u64,
}

/// The verdict on a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Registered id.
    pub id: String,
    /// The number of the article it is from.
    pub source: String,
    /// The claim, in a sentence.
    pub text: String,
    /// Whether it is so on this machine.
    pub verdict: ClaimVerdict,
    /// The numbers it rests on.
    #[serde(deserialize_with = "unique_keys")]
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// Why it was judged so, in a sentence with the numbers.
    #[serde(default)]
    pub because: String,
}

/// Whether a claim is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It is.
    Holds,
    /// It is not.
    Fails,
    /// The numbers do not decide.
    Inconclusive,
}

impl ClaimVerdict {
    /// The word the record has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The description of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ExperimentFacts {
    /// A one-line summary.
    pub summary: String,
    /// The expected result.
    pub hypothesis: String,
    /// The result that would refute it.
    pub refuted_by: String,
    /// The controlled variables, and the corrections.
    pub controls: Vec<String>,
    /// Measurements besides the metric.
    pub extras: Vec<Extra>,
    /// The axis charts and tables go along; empty for the last one.
    pub along: String,
    /// The axis that is a line of a chart and a column of a table each; empty for the first one.
    pub lines: String,
}

/// A measurement besides the metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// Its key in [`Case::extra`].
    pub name: String,
    /// The unit; empty for a count.
    pub unit: String,
    /// A summary of a few words.
    pub summary: String,
}

/// How an experiment was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SweepRun {
    /// Which values the axes had that none were given for: `quick`, `default` or `full`.
    pub size: String,
    /// The seed of the order of cases.
    pub seed: u64,
    /// The most it was to take; `None` without end.
    pub max_time_ns: Option<u64>,
    /// The wall time.
    pub wall_ns: u64,
    /// The number of rounds over the cases.
    pub rounds: u64,
    /// Cases whose interval was still wide when the time was up.
    pub loose: u64,
    /// Whether it was interrupted, and is incomplete.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub is_partial: bool,
    /// The directory its files were created in, and its file system. `None` in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// The output file for the complete record: only in the saved state of an interrupted run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// The share of the plan that it is; `None` for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The shards that it was merged from; empty for a run in one piece, and for one of several
    /// whole records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<MergedShard>,
}
