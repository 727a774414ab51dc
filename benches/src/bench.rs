//! The declaration of a bench.

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, FromArgMatches};

use crate::summary::Row;
use crate::summary::raw::Raw;

/// A text made of records, their rows, and a link to them.
pub type Block = fn(&[Raw], &[Row], &str) -> String;

/// A bench.
pub struct Bench {
    /// Its name, and that of its folder in the run's.
    pub name: &'static str,
    /// The question it answers.
    pub title: &'static str,
    /// How long it takes, about, on two CPUs.
    pub minutes: u32,
    /// The programs of scripts/ that build its peers into the folder that is named behind them.
    pub peers: &'static [&'static str],
    /// Its command line.
    pub command: fn() -> clap::Command,
    /// Runs it, or a part of it, as it was told.
    pub run: fn(&ArgMatches) -> Result<ExitCode>,
    /// The rows of one of its raw records.
    pub rows: fn(&Raw) -> Vec<Row>,
    /// The rows of all its records together.
    pub overall: fn(&[Row]) -> Vec<Row>,
    /// Its text for readers who want no more.
    pub block: Option<Block>,
}

impl Bench {
    /// Its make target.
    pub fn target(&self) -> String {
        format!("bench-{}", self.name)
    }
}

/// Has `run` told what was said on the command line.
pub(crate) fn run_with_args<Args: FromArgMatches>(
    matches: &ArgMatches,
    run: fn(&Args) -> Result<ExitCode>,
) -> Result<ExitCode> {
    run(&Args::from_arg_matches(matches)?)
}

/// Where the rows of all records say nothing together.
pub(crate) fn no_rows(_: &[Row]) -> Vec<Row> {
    Vec::new()
}
