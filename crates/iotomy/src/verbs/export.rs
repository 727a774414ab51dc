//! `iotomy export`: records as Parquet data sets.
//!
//! The crates of Arrow are as large as the rest of the command, so `iotomy-export` has them (`crates/export`). It takes
//! this process's place, and so its status, signals and files are its own. This verb owns the options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;

use super::program;
use crate::manual::{Fact, Manual};

/// The name of the program.
const PROGRAM: &str = "iotomy-export";

const ALL: Fact = ("0", "All records were exported.");

const NOT_ALL: Fact = (
    "1",
    "Some records could not be read or exported; standard error names them. The others were exported.",
);

const FAILED: Fact = (
    "2",
    "The command line is wrong, the data set cannot be written, or iotomy-export is not installed.",
);

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy export --parquet fleet run.json race.json", "Export two records:"),
        (
            "iotomy export --parquet fleet --machine web1 collected/web1/*.json",
            "Export records that were collected from a machine:",
        ),
        (
            "iotomy export --parquet fleet nightly",
            "Export all runs that the history keeps by a name:",
        ),
        (
            "duckdb -c \"SELECT * FROM read_parquet('fleet/runs/**/*.parquet')\"",
            "Query what was exported:",
        ),
    ],
    status: &[ALL, NOT_ALL, FAILED],
    see_also: &["iotomy-history(1)", "iotomy-report(1)"],
};

/// Write records as Parquet data sets for DuckDB, Spark and others
///
/// Each table is a directory of DIR, with a file per record in `date=DATE/machine=NAME`. A record that is exported again
/// replaces its own files. docs/export.md lists tables and columns, with queries.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The directory of the data set; created if it does not exist
    #[arg(long, value_name = "DIR", required = true)]
    parquet: PathBuf,

    /// The machine of the records, instead of the name in each; records without a name are of `unknown`
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    machine: Option<String>,

    /// The records: files as `--json` wrote them (`-` is standard input), and runs of the history
    /// by number, name or `last`; a name means all of its runs
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<OsString>,
}

/// Becomes the program that exports.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let mut words: Vec<OsString> = vec!["--parquet".into(), args.parquet.clone().into()];
    if let Some(machine) = &args.machine {
        words.extend(["--machine".into(), machine.into()]);
    }
    words.push("--".into());
    words.extend(args.records.iter().cloned());
    program::become_program(PROGRAM, "build-export", words)
}
