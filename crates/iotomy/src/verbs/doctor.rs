//! `iotomy doctor`: what works on this machine, what does not, and why.
//!
//! It owns the order of the steps; what is tried is the business of [`iotomy_doctor`], and how the list looks that of
//! [`iotomy_report`]. The list is an answer even when everything in it is missing: only a list that could not be made
//! is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use iotomy_doctor::{Context, try_all};
use iotomy_host::rfc3339;
use iotomy_record::DoctorRun;
use iotomy_record::store::OutputFile;

use super::outputs;
use super::this_machine::machine;
use crate::manual::{FAILED, Manual};
use crate::pager;
use crate::screen::{OutputStyle, path_text};

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy doctor", "List the supported capabilities, and how to get the others:"),
        (
            "iotomy doctor --path /mnt/disk --json doctor.json",
            "Try another file system, and keep the list:",
        ),
    ],
    status: &[("0", "The list is complete, even if capabilities are missing."), FAILED],
    see_also: &["iotomy-limits(1)"],
};

/// List the capabilities that this machine supports, those it does not, and why
///
/// Tries every capability instead of guessing from a version, and leaves nothing behind: no file,
/// no mount, no process, no changed limit.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Try the file system of this directory instead of the current one's
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// Write the list to FILE as a record as well; with `-`, standard output, the text is not
    /// printed
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Tries everything and prints the results.
///
/// # Errors
/// When the directory does not exist, or the list could not be written.
pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let json = args.json.as_deref().map(|path| outputs::open_one("--json", path, &outputs::here()));
    let json = json.transpose()?;
    let context = match &args.path {
        Some(folder) => Context { folder: checked(folder)? },
        None => Context::default(),
    };
    let record = DoctorRun {
        schema: DoctorRun::SCHEMA,
        started: rfc3339(SystemTime::now()),
        machine: machine(),
        checks: try_all(&context),
    };
    let (mut written, mut saved) = (Ok(()), Ok(()));
    if !json.as_ref().is_some_and(OutputFile::is_standard) {
        let text = iotomy_report::doctor(&record, &args.looks.on(&std::io::stdout()));
        written = pager::print(&text);
    }
    if let Some(to) = json {
        let mut json = serde_json::to_vec_pretty(&record)?;
        json.push(b'\n');
        saved = to.put(&json);
    }
    outputs::all([written, saved].map(|one| one.map_err(Into::into)))?;
    Ok(ExitCode::SUCCESS)
}

fn checked(folder: &Path) -> Result<PathBuf> {
    let name = path_text(folder);
    let remedy = "name an existing directory with --path";
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(folder.to_owned()),
        Ok(_) => bail!("cannot try the file system of {name}: it is not a directory; {remedy}"),
        Err(error) => bail!("cannot try the file system of {name}: {error}; {remedy}"),
    }
}
