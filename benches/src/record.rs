//! The raw record of a bench, `iotomy.sweep/1`: every sample of every run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use iotomy_record::{Machine, store::OutputFile};
use serde::Serialize;
use serde_json::Value;

use crate::conditions::Conditions;
use crate::stats::estimate;

/// A run of a bench.
#[derive(Debug, Serialize)]
pub struct Sweep {
    schema: &'static str,
    started: String,
    machine: Machine,
    experiment: &'static str,
    axes: Vec<Axis>,
    /// The measurements.
    pub cases: Vec<Case>,
    /// The judged claims.
    pub claims: Vec<Claim>,
}

#[derive(Debug, Serialize)]
struct Axis {
    name: &'static str,
    unit: &'static str,
    values: Vec<Value>,
}

/// One figure of one measurement, with all its samples.
#[derive(Debug, Serialize)]
pub struct Case {
    /// The parameters of the measurement: a value on each axis, and other values that distinguish
    /// it.
    pub params: BTreeMap<&'static str, Value>,
    metric: &'static str,
    unit: &'static str,
    samples: Vec<f64>,
    median: f64,
    mean: f64,
    stddev: f64,
    ci95: [f64; 2],
    /// Further figures of the measurement.
    pub extra: BTreeMap<&'static str, f64>,
    /// The reason why it was not measured.
    pub skipped: Option<String>,
}

/// A target and its verdict.
#[derive(Debug, Serialize)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The origin of the claim.
    pub source: &'static str,
    /// The text.
    pub text: String,
    /// `holds`, `fails` or `inconclusive`.
    pub verdict: &'static str,
    /// The figures that decide the verdict.
    pub evidence: Value,
}

impl Sweep {
    /// Creates an empty record with these names on its axes.
    pub fn new(
        experiment: &'static str,
        conditions: &Conditions,
        axes: &[(&'static str, Vec<String>)],
    ) -> Self {
        let axis = |(name, values): &(&'static str, Vec<String>)| Axis {
            name,
            unit: "",
            values: values.iter().cloned().map(Value::from).collect(),
        };
        Self {
            schema: "iotomy.sweep/1",
            started: conditions.started.clone(),
            machine: conditions.machine.clone(),
            experiment,
            axes: axes.iter().map(axis).collect(),
            cases: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Writes the record to `path`.
    ///
    /// # Errors
    /// When the record cannot be written completely.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.write_as(path, serde_json::to_vec_pretty(self))
    }

    /// Writes the record to `path` on one line, which takes less than half the space when samples
    /// are many.
    ///
    /// # Errors
    /// When the record cannot be written completely.
    pub fn write_on_one_line(&self, path: &Path) -> Result<()> {
        self.write_as(path, serde_json::to_vec(self))
    }

    fn write_as(&self, path: &Path, raw: serde_json::Result<Vec<u8>>) -> Result<()> {
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        let mut raw = raw.context("cannot write the record")?;
        raw.push(b'\n');
        OutputFile::write(path, &here, &raw)?;
        Ok(())
    }
}

impl Claim {
    /// The source of a bench's targets.
    pub const OF_TARGETS: &'static str = "targets";

    /// Returns whether this is a target of a bench; other claims come from articles, which are
    /// identified by number.
    pub fn is_target(&self) -> bool {
        !self.source.bytes().all(|letter| letter.is_ascii_digit())
    }
}

impl Case {
    /// Creates a figure, with statistics computed from the samples.
    pub fn new(
        params: &[(&'static str, &str)],
        metric: &'static str,
        unit: &'static str,
        samples: &[f64],
    ) -> Self {
        let all = iotomy_stats::Summary::from_samples(samples);
        let found = estimate(samples);
        Self {
            params: params.iter().map(|(axis, value)| (*axis, (*value).into())).collect(),
            metric,
            unit,
            samples: samples.to_vec(),
            median: found.map_or(0.0, |found| found.median),
            mean: all.map_or(0.0, |all| all.mean),
            stddev: all.map_or(0.0, |all| all.stddev),
            ci95: found.map_or([0.0; 2], |found| [found.low, found.high]),
            extra: BTreeMap::new(),
            skipped: None,
        }
    }

    /// Returns the same case, marked as not measured for this reason.
    pub fn skipped_for(self, reason: &str) -> Self {
        Self { skipped: Some(reason.to_owned()), ..self }
    }
}
