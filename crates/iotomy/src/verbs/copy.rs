//! `iotomy copy`: moves bytes by the fastest mover for a pair of descriptors.
//!
//! This module owns the command line, what is printed, and the record that is saved; the work is in [`iotomy_copy`],
//! which tells the [`Terminal`] how it goes.

mod list;
mod options;
mod progress;
pub(super) mod sizes;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use iotomy_copy::{Account, CopyError, copy, is_standard_input};
use iotomy_host::rfc3339;
use iotomy_record::store::{OutputFile, RecordRef, same_output};

pub(crate) use self::options::{CopyArgs, MANUAL};
use self::terminal::Terminal;
use super::this_machine::machine;
use super::{judging, outputs};
use crate::errors::COULD_NOT_RUN;
use iotomy_record::path_text;

/// A check of the result failed.
const CHECK_FAILED: u8 = 1;

/// Copies.
///
/// # Errors
/// The error that prevents any copy; errors of single sources are printed and counted.
pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    if args.list {
        list::print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (sources, target) = args.ends()?;
    let json = args.json.as_ref().map(|json| spares(json, sources, target)).transpose()?;
    let started = args.makes_record().then(SystemTime::now);
    let mut terminal = Terminal::new(args);
    let account = copy(&args.options(), sources, target, &mut terminal)?;
    terminal.meter.end();
    let mut status = status(&account);
    if let Some(started) = started {
        let mut record = account.record(rfc3339(started), machine(), (sources, target));
        record.findings = judging::findings(true, |limits| iotomy_findings::copy(&record, limits));
        let explained = terminal.ended(&record);
        let saved = json.map_or(Ok(()), |json| RecordRef::Copy(&record).save(json));
        let is_kept = args.save.keep_if_wanted(RecordRef::Copy(&record), false);
        outputs::all([explained, saved].map(|one| one.map_err(Into::into)))?;
        status = status.max(if is_kept { 0 } else { COULD_NOT_RUN });
    }
    Ok(ExitCode::from(status))
}

fn status(account: &Account) -> u8 {
    let statuses = account.errors.iter().map(|error| match error {
        CopyError::Differs(_) => CHECK_FAILED,
        _ => COULD_NOT_RUN,
    });
    statuses.max().unwrap_or(0)
}

/// Refuses a record that would overwrite a source or the target, or cannot be written; otherwise
/// returns its place.
fn spares(json: &Path, sources: &[PathBuf], target: &Path) -> Result<OutputFile> {
    let here = outputs::here();
    let mut named = vec![target.to_path_buf()];
    for source in sources.iter().filter(|source| !is_standard_input(source)) {
        named.push(source.clone());
        named.extend(source.file_name().map(|name| target.join(name)));
    }
    match named.into_iter().find(|path| same_output(json, path, &here)) {
        Some(path) => {
            let (json, path) = (path_text(json), path_text(&path));
            bail!("--json {json} would be written over {path}; give the record another file")
        }
        None => outputs::open_one("--json", json, &here),
    }
}
