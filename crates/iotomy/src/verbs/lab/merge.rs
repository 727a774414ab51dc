//! `iotomy lab merge`: the records of shards, or of several machines, become one.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use iotomy_lab::{Experiment, Given, MergeError, Share, Size, experiment, merged};
use iotomy_record::store;
use iotomy_record::{AxisValue, Sweep, lossless};

use super::run::{nothing_measured, write_out};
use super::turns::{DASH, FOLDER};
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::Manual;
use crate::screen::{OutputStyle, path_text};
use crate::verbs::outputs;

pub(super) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy lab merge records/copy-*-of-5.json -o copy.json",
            "Merge the records of five shards:",
        ),
        (
            "iotomy lab merge node1.json node2.json -o nodes.json",
            "Merge whole records of two machines, with the machine as an axis:",
        ),
    ],
    status: &[
        ("0", "The merged record was written, with any verdict on its claims."),
        (
            "2",
            "The command line is wrong; the records do not make one, which is explained; no case was \
             measured; or the merged record could not be written.",
        ),
    ],
    see_also: &["iotomy-lab-run(1)", "iotomy-report(1)"],
};

/// Join the records of all shards, or whole records of several machines
///
/// Of one machine, the merged record is as one of a run in one piece. Of several machines, the machine
/// becomes an axis, and claims are judged for each machine and over all; cases of two machines are
/// never compared.
#[derive(Debug, clap::Args)]
pub(super) struct MergeArgs {
    /// The records, as `iotomy lab run --json` wrote them; `-` is standard input
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,

    /// Write the merged record to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Print no report
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Merges them.
///
/// # Errors
/// Records that cannot be read, or do not make one, or a file that cannot be written.
pub(super) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let here = outputs::here();
    let is_output =
        |path: &&PathBuf| path.as_os_str() != DASH && store::same_output(path, &args.output, &here);
    if let Some(path) = args.records.iter().find(is_output) {
        bail!(
            "cannot write the merged record to {}: it is one of the records; give another name with -o",
            path_text(path)
        );
    }
    let to = outputs::open_one("--output", &args.output, &here)?;
    if args.records.iter().filter(|path| path.as_os_str() == DASH).count() > 1 {
        bail!("cannot read two records from standard input: name the files");
    }
    let load = |path: &PathBuf| {
        let name = lossless(path.as_os_str().as_bytes());
        Ok(Given { name, sweep: store::load_sweep(path)? })
    };
    let records: Vec<Given> = args.records.iter().map(load).collect::<Result<_>>()?;
    let first = records.first().context("there is no record to merge")?;
    let experiment = experiment(&first.sweep.experiment).with_context(|| {
        format!(
            "cannot merge {}: this iotomy does not know the experiment {}",
            first.name, first.sweep.experiment
        )
    })?;
    let record = match merged(experiment, &records) {
        Ok(record) => record,
        Err(MergeError::Missing { missing }) => {
            let run = command(experiment, &first.sweep, missing.first().copied());
            let (name, missing) = (&first.sweep.experiment, MergeError::Missing { missing });
            bail!("cannot merge the shards of {name}: {missing}; run each, as in: {run}");
        }
        Err(error) => return Err(error.into()),
    };
    write_out((args.quiet, args.looks), &record, Some(to))?;
    if let Some(error) = nothing_measured(&record) {
        print_error(&error);
        return Ok(ExitCode::from(COULD_NOT_RUN));
    }
    Ok(ExitCode::SUCCESS)
}

/// The command that runs a shard, with the options of the others.
fn command(experiment: &dyn Experiment, like: &Sweep, share: Option<Share>) -> String {
    let mut words = vec!["iotomy lab run".to_owned(), like.experiment.clone()];
    let sizes = [Size::Quick, Size::Default, Size::Full];
    let size = sizes.into_iter().find(|size| size.name() == like.run.size).unwrap_or(Size::Default);
    if size != Size::Default {
        words.push(format!("--{}", size.name()));
    }
    for (declared, axis) in experiment.declaration().axes.iter().zip(&like.axes) {
        let usual = declared.values(size).into_iter().map(AxisValue::from);
        if !usual.eq(axis.values.iter().cloned()) {
            let values = axis.values.iter().map(ToString::to_string).collect::<Vec<_>>();
            words.push(format!("-L {}={}", axis.name, values.join(",")));
        }
    }
    let limit = like.run.max_time_ns;
    if let Some(ns) = limit
        && size.max_time().map(|time| time.as_nanos()) != Some(ns.into())
    {
        words.push(format!("--max-time {}", ns as f64 / 1e9));
    }
    if let Some(volume) = like.run.volume.as_ref().filter(|volume| volume.path != FOLDER) {
        words.push(format!("--path {}", quoted(&volume.path)));
    }
    if let Some(Share { index, of }) = share {
        words.push(format!("--shard {index}/{of} --json {}-{index}-of-{of}.json", like.experiment));
    }
    words.join(" ")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_more_into_it() {
        assert_eq!(quoted("/var/tmp"), "/var/tmp");
        assert_eq!(quoted("/a b"), "'/a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
